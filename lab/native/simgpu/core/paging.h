/* Managed memory: pages that are on the GPU or on the host and move when they are used.
 *
 * It is not known which pages a kernel uses, so each kernel is assumed to use all of its process. What is on the host
 * moves in before, and pages of the processes that were idle longest move out for them. Pages that do not fit at all
 * pass through the GPU with every kernel. Amounts are MiB.
 *
 * Example: a GPU has 16,000 MiB. A allocates 10,000, all on the GPU. B allocates 10,000: 6,000 are on the GPU, 4,000 on
 * the host. B launches a kernel: 4,000 of A's move out, 4,000 of B's move in, and the kernel waits 0.32 s for them. */
#ifndef SIMGPU_PAGING_H
#define SIMGPU_PAGING_H

#include "core/machine.h"

#define PAGING_US_PER_MIB 80 /* PCIe 3.0 x16; what moves out for a kernel moves at the same time */
#define PAGING_NS_PER_MIB (PAGING_US_PER_MIB * 1000)

/* New memory: on the GPU as far as it fits. False when the rest is too much for the host. */
bool paging_take(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib);
/* Frees as much; pages on the host go first, but for `kept` that belong to other allocations. */
void paging_give(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib, uint32_t kept);

/* Makes space for `mib` more by moving out pages of any process, least recently used first. False when it cannot. Adds
 * to `moved` what it moved. */
bool paging_evict(const struct machine *m, uint32_t gpu, uint32_t mib, uint32_t *moved);

/* Moves up to `mib` of the slot's own pages to the host. Returns how much. */
uint32_t paging_push(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib);

/* The slot's process uses its memory now, all but `kept` of it, which stays on the host. Returns how much has to move
 * in for it. */
uint32_t paging_touch(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t kept);

static inline uint32_t paging_spilled(uint64_t managed)
{
    return (uint32_t)(managed >> 32);
}

#endif
