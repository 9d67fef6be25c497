/* Memory of one process that others have open. It stays on the GPU, charged to its owner's slot, until the last of them
 * closes it, even if the owner frees it or ends before. An allocation is identified by its owner's identity and a
 * number.
 *
 * Example: A allocates 10 MiB and exports them, B opens them: the table has (A's allocation, open in B). A frees them:
 * the table also has (A's allocation, freed), and they stay charged to A's slot. B closes them: no process has them
 * open, so B removes the second entry too and gives the 10 MiB back for A. If A had been killed instead, its slot would
 * have stayed with 10 MiB until then. */
#ifndef SIMGPU_IMPORTS_H
#define SIMGPU_IMPORTS_H

#include "core/machine.h"

struct imported {
    uint64_t owner, number;
    uint32_t gpu, slot, mib; /* slot: the owner's */
};

/* False when the table is full. `user` is the identity of the process that opens it. */
bool imports_open(const struct machine *m, const struct imported *what, uint64_t user);
void imports_close(const struct machine *m, const struct imported *what, uint64_t user);

/* The owner frees it. True when it is still open: then it stays charged until it is closed. */
bool imports_mark_freed(const struct machine *m, const struct imported *what);

/* What others have open of an owner that has ended. */
uint32_t imports_held_by_others(const struct machine *m, uint32_t gpu, uint64_t owner);

/* Closes what dead processes have open. */
void imports_close_dead(const struct machine *m);

#endif
