/* The processes that use the machine. A process takes a slot in cuInit and keeps it until it ends. */
#ifndef SIMGPU_SLOTS_H
#define SIMGPU_SLOTS_H

#include "core/machine.h"

/* A slot for the calling process, or UINT32_MAX when living processes have all of them. */
uint32_t slots_join(const struct machine *m);
/* Gives up the slot and all that it holds. */
void slots_leave(const struct machine *m, uint32_t slot);
/* Frees what dead processes hold, at most once per `pause_ns` on the whole machine. */
void slots_sweep(const struct machine *m, uint64_t pause_ns);

bool slots_is_ready(const struct machine *m, uint32_t slot);
/* Whether its process has ended, though others have memory of it open. */
bool slots_is_dead(const struct machine *m, uint32_t slot);
/* 0 when the slot is free. */
uint32_t slots_pid(const struct machine *m, uint32_t slot);
/* Bytes that the processes of a cgroup hold; managed memory is not among them. */
uint64_t slots_cgroup_bytes(const struct machine *m, uint64_t cgroup, uint32_t gpu);

#endif
