/* The time of a client of MPS. Clients do not take turns: each has its percent of the GPU's processors, on which its
 * work takes so much longer, and all run at the same time. When the clients that have work were promised more than
 * there is, what is submitted then takes longer still, in proportion.
 *
 * Example: work of 20 ms takes a client with 25 % of the processors 80 ms, whether it is alone or one of four. When
 * five such clients have work, 125 % were promised, and what is submitted then takes 100 ms.
 *
 * A lane belongs to one process. Positions are those of its queue, as in timeline.h. */
#ifndef SIMGPU_LANE_H
#define SIMGPU_LANE_H

#include "core/machine.h"

/* Makes the slot a client on a GPU, without work yet. At most 100 percent; a memory limit of 0 means none. */
void lane_open(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t percent, uint32_t limit_mib);
/* Whether the slot has a lane on the GPU. */
bool lane_exists(const struct machine *m, uint32_t gpu, uint32_t slot);
/* MiB that the client may hold; 0: no limit. */
uint32_t lane_limit_mib(const struct machine *m, uint32_t gpu, uint32_t slot);
/* MiB that the process itself would hold with so much more. Of what a client's contexts take, the server has most, and
 * the client is limited by the rest. */
uint32_t lane_held_mib(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t more_mib);
/* The multiprocessors that the process sees: those of a client come in pairs. */
uint32_t lane_multiprocessors(const struct machine *m, uint32_t gpu, uint32_t slot);

uint64_t lane_append(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t ns);
uint64_t lane_end(const struct machine *m, uint32_t gpu, uint32_t slot);
uint64_t lane_done(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t now);
/* When the calling process's work up to `position` was or will be done, not before `fallback`, which is returned when
 * that was too long ago to know. */
uint64_t lane_time_of(uint32_t gpu, uint64_t position, uint64_t fallback);
/* The position up to which work was done at `since`, a whole tenth of a second in the last second or so. */
uint64_t lane_done_in_history(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t since);

#endif
