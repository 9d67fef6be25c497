/* The container's share of each GPU's time, as its processes keep it together in `usage`, and what the arbiter says
 * about it. No lock: each step is one atomic word, and one that is lost with a killed process makes the container wait
 * longer at most. */
#ifndef LAMINA_TIME_SHARE_H
#define LAMINA_TIME_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* CLOCK_MONOTONIC in ns. */
uint64_t share_now(void);

/* Whether launches on this GPU are measured: there is a limit, or somebody else needs to know. */
bool share_measured(int device, uint64_t now);

/* Whether a container of higher priority has the GPU. */
bool share_closed(int device, uint64_t now);

/* Words that are not 0 when a launch has to ask: about a measured GPU, and about one that is not. In the place of one
 * that nobody will set back to 0, since nobody decides, comes one that is always 0. */
extern const uint64_t share_old_word __attribute__((visibility("hidden")));
const uint64_t *share_closed_word(int device, uint64_t now);
const uint64_t *share_attention_word(int device, uint64_t now);

/* Charges `ns` of work when the container is not in debt, and returns 0; else changes nothing and returns for how long
 * it is, in ns. Applies the arbiter's refunds first. */
uint64_t share_take(int device, uint64_t now, uint64_t ns);

/* Charges `ns` more or, when negative, less. */
void share_correct(int device, uint64_t now, int64_t ns);

/* Tells that this process had work on the GPU in that time, `density` of it, and returns for how many ns the container
 * is charged. `brief`: see bucket.h. */
uint64_t share_worked(int device, uint64_t now, uint64_t from, uint64_t to, double density, bool brief);

/* Stamps about this process, which the arbiter reads. */
void share_asks(int device, uint64_t now);
void share_waits(int device, uint64_t now, uint64_t ns);
void share_busy(int device, uint64_t since);

#endif
