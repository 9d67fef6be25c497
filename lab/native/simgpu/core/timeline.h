/* The GPU's time: one thing runs at a time, processes take turns, and a turn ends when its process has nothing left
 * to do or after a time slice. What a process submits in its turn waits for the next one if another has work, as on an
 * H200. All of it follows from when work was submitted, so no process has to watch the GPU: a process that queries it
 * computes the turns up to now.
 *
 * Clients of MPS are handled in lane.c instead, behind the same functions.
 *
 * A process's work on a GPU is one queue. A position in it is the sum of all durations submitted up to there.
 *
 * Example: a turn lasts 2 ms at most. A submits 3 ms of work at 0 ms, B submits 1 ms at 1 ms.
 *
 *   turn 1   A, from 0 to 2 ms: its work takes longer than a turn
 *   turn 2   B, from 2 to 3 ms: B's work is done
 *   turn 3   A, from 3 to 4 ms: A's work is done
 *
 * B looks again at 10 ms. It computes turns 2 and 3 then, and learns that its work was done at 3 ms. */
#ifndef SIMGPU_TIMELINE_H
#define SIMGPU_TIMELINE_H

#include "core/machine.h"

/* Appends `ns` of work and returns the position of its end. */
uint64_t timeline_append(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t ns);
/* The position of the end of all work submitted so far. */
uint64_t timeline_end(const struct machine *m, uint32_t gpu, uint32_t slot);
/* The position up to which work was done at `now`. */
uint64_t timeline_done(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t now);
/* Sleeps until the work up to `position` is done. */
void timeline_wait(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t position);
/* When the work up to `position` was done; `fallback` when that is too long ago to know. Call it once it is done. */
uint64_t timeline_time_of(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t position, uint64_t fallback);

/* How long turns on a GPU are at most, as 0 (default), 1 (short), 2 (medium), 3 (long); instances have their GPU's. */
uint32_t timeline_slice(const struct machine *m, uint32_t gpu);
/* False for any other value. It takes effect with the next turn. */
bool timeline_set_slice(const struct machine *m, uint32_t gpu, uint32_t slice);

/* Share of the last second or so, in percent, that the GPU was busy, or busy for one slot. */
uint32_t timeline_busy_percent(const struct machine *m, uint32_t gpu);
uint32_t timeline_slot_percent(const struct machine *m, uint32_t gpu, uint32_t slot);

#endif
