/* The GPU's time: one thing runs at a time, processes take turns, and a turn ends when its process has nothing left
 * to do or after a time slice. All of it follows from when work was asked for, so nobody has to watch the GPU:
 * whoever asks works out the turns up to now.
 *
 * Clients of MPS are looked after in lane.c instead, behind the same functions.
 *
 * A process's work on a GPU is one queue. A position in it is the sum of all durations asked for up to there. */
#ifndef SIMGPU_TIMELINE_H
#define SIMGPU_TIMELINE_H

#include "machine.h"

/* Appends `ns` of work and returns the position of its end. */
uint64_t timeline_add(const machine *m, uint32_t gpu, uint32_t slot, uint64_t ns);
/* The position of the end of all work asked for so far. */
uint64_t timeline_end(const machine *m, uint32_t gpu, uint32_t slot);
/* The position up to which work was done at `now`. */
uint64_t timeline_done(const machine *m, uint32_t gpu, uint32_t slot, uint64_t now);
/* Sleeps until the work up to `position` is done. */
void timeline_wait(const machine *m, uint32_t gpu, uint32_t slot, uint64_t position);
/* When the work up to `position` was done; `fallback` when that is too long ago to know. Call it once it is done. */
uint64_t timeline_when(const machine *m, uint32_t gpu, uint32_t slot, uint64_t position, uint64_t fallback);

/* When a process that has no work left would be looked at: now, or when the present turn of another one ends. */
uint64_t timeline_reaches(const machine *m, uint32_t gpu, uint32_t slot, uint64_t now);

/* How long turns on a GPU are at most, as 0 (default), 1 (short), 2 (medium), 3 (long); instances have their GPU's. */
uint32_t timeline_slice(const machine *m, uint32_t gpu);
/* False for what is none of these. It holds from the next turn. */
bool timeline_set_slice(const machine *m, uint32_t gpu, uint32_t slice);

/* Share of the last second or so, in percent, that the GPU was busy, or busy for one slot. */
uint32_t timeline_busy_percent(const machine *m, uint32_t gpu);
uint32_t timeline_slot_percent(const machine *m, uint32_t gpu, uint32_t slot);

#endif
