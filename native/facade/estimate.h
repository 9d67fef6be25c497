/* How much of the time between a batch's two events the GPU worked for it: pure functions of what was measured.
 *
 * Between the events lie also the gaps of a program that launches more slowly than the GPU works, and the turns that
 * other processes had. Single launches, taken now and then, tell what a launch takes without either. */
#ifndef LAMINA_ESTIMATE_H
#define LAMINA_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* What launches take, in ns: on average, and lately at most. */
struct estimate {
    uint64_t each, most;
    bool known;
};

/* `span`: between the events. `behind`: from the last launch until the GPU was done. */
struct measured {
    uint64_t span, behind;
    uint32_t launches;
};

/* A time between events that is too short for any kernel: nothing but the calls between them. */
#define NO_WORK_NS UINT64_C(250)

/* The GPU is done so soon after the last launch that it waited for launches. Then its work is spread over the span. */
bool estimate_sparse(const struct estimate *estimate, struct measured measured);

/* ns of work, at most the span. `*sure`: the rest of the span is known to be gaps or turns of others; without it, it is
 * not known whose time the span was. */
uint64_t estimate_work(const struct estimate *estimate, struct measured measured, bool *sure);

/* Learns where the span is nothing but the batch's own work. */
void estimate_learn(struct estimate *estimate, struct measured measured);

#endif
