/* For how much of the time between a batch's two events the GPU worked for it: pure functions of measurements.
 *
 * Between the events there are also the gaps of a program that launches more slowly than the GPU works, and the turns
 * of other processes. Single launches, measured now and then, show what a launch takes without either.
 *
 * Example: single launches take 10 us. A batch of 20 launches spans 1 ms, and the GPU is done 5 us after the last
 * launch. So it waited for launches (the batch is sparse), and its work is 20 * 10 us = 200 us. Had the GPU been done
 * 500 us after the last launch, it would always have had work, and the work would be the whole span, 1 ms. */
#ifndef LAMINA_ESTIMATE_H
#define LAMINA_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* What launches take, in ns: on average, and the recent maximum. */
struct estimate {
    uint64_t each, most;
    bool known;
};

/* `span`: between the events. `behind`: from the last launch until the GPU was done. */
struct measured {
    uint64_t span, behind;
    uint32_t launches;
};

/* A time between events that is too short for any kernel: only the calls between them. */
#define NO_WORK_NS UINT64_C(250)

/* Whether the GPU was done so soon after the last launch that it waited for launches. Then its work is spread over the
 * span. */
bool estimate_is_sparse(const struct estimate *estimate, struct measured measured);

/* ns of work, at most the span. `*certain`: the rest of the span is known to be gaps or turns of others. Otherwise it
 * is not known whose time the span was. */
uint64_t estimate_work(const struct estimate *estimate, struct measured measured, bool *certain);

/* Learns from batches whose span is only their own work. */
void estimate_learn(struct estimate *estimate, struct measured measured);

#endif
