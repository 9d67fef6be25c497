/* How much of a slot's work was done at each of the last tenths of a second, for utilization.
 *
 * An entry of a cell's history has the number of its tenth in the high bits and the microseconds of GPU time that were
 * done then in the low ones. Both are cut off, so an entry is known to be of a tenth by its low 20 bits. */
#ifndef SIMGPU_HISTORY_H
#define SIMGPU_HISTORY_H

#include "simgpu_layout.h"

#include <stdatomic.h>
#include <stdbool.h>

#define HISTORY_TENTH_BITS 20
#define HISTORY_DONE_BITS (64 - HISTORY_TENTH_BITS)

static inline void history_store(struct simgpu_cell *cell, uint64_t tenth, uint64_t done_us)
{
    uint64_t done = done_us & ((1ull << HISTORY_DONE_BITS) - 1);
    atomic_store(&cell->history[tenth % SIMGPU_HISTORY], tenth << HISTORY_DONE_BITS | done);
}

/* False when there is no entry of this tenth: it is too old, or was not stored. */
static inline bool history_find(struct simgpu_cell *cell, uint64_t tenth, uint64_t *done_us)
{
    uint64_t entry = atomic_load(&cell->history[tenth % SIMGPU_HISTORY]);
    *done_us = entry & ((1ull << HISTORY_DONE_BITS) - 1);
    return entry >> HISTORY_DONE_BITS == (tenth & ((1ull << HISTORY_TENTH_BITS) - 1));
}

#endif
