/* The time of a client of MPS. Clients do not take turns: each has its percent of the GPU's processors, on which its
 * work takes so much longer, and all run at the same time. When the clients that have work at hand were promised more
 * than there is, what is asked for meanwhile takes longer still, in proportion.
 *
 * A lane belongs to one process. Positions are those of its queue, as in timeline.h. */
#ifndef SIMGPU_LANE_H
#define SIMGPU_LANE_H

#include "machine.h"

/* Makes the slot a client on a GPU; it has no work yet. At most 100 percent; no limit of memory is 0. */
void lane_open(const machine *m, uint32_t gpu, uint32_t slot, uint32_t percent, uint32_t limit_mib);
/* Whether the slot has a lane on the GPU. */
bool lane_of(const machine *m, uint32_t gpu, uint32_t slot);
/* MiB that the client may hold; 0 is no limit. */
uint32_t lane_limit_mib(const machine *m, uint32_t gpu, uint32_t slot);

uint64_t lane_add(const machine *m, uint32_t gpu, uint32_t slot, uint64_t ns);
uint64_t lane_end(const machine *m, uint32_t gpu, uint32_t slot);
uint64_t lane_done(const machine *m, uint32_t gpu, uint32_t slot, uint64_t now);
/* When the calling process's work up to `position` was or will be done, not before `fallback`, which is the answer when
 * that was too long ago to know. */
uint64_t lane_when(uint32_t gpu, uint64_t position, uint64_t fallback);
/* The position up to which work was done at `since`, a whole tenth of a second in the last second or so. */
uint64_t lane_then(const machine *m, uint32_t gpu, uint32_t slot, uint64_t since);

#endif
