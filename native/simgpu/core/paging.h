/* Managed memory: pages that lie on the GPU or on the host and move when they are used.
 *
 * Which pages a kernel uses nobody knows, so each is taken to use all that its process has. What lies on the host moves
 * in before, and pages of the processes that were idle longest move out for them. Pages that do not fit at all travel
 * through the GPU with every kernel. Amounts are MiB. */
#ifndef SIMGPU_PAGING_H
#define SIMGPU_PAGING_H

#include "machine.h"

#define PAGING_NS_PER_MIB 80000u /* PCIe 3.0 x16; what moves out does so at the same time */

/* New memory: on the GPU as far as there is room. False when the rest is too much for the host. */
bool paging_take(const machine *m, uint32_t gpu, uint32_t slot, uint32_t mib);
void paging_give(const machine *m, uint32_t gpu, uint32_t slot, uint32_t mib);

/* Makes room for `mib` more by moving out pages of any process, least recently used first; false when it cannot. */
bool paging_evict(const machine *m, uint32_t gpu, uint32_t mib);

/* The slot's process uses its memory now. Returns how much has to move in for it. */
uint32_t paging_touch(const machine *m, uint32_t gpu, uint32_t slot);

static inline uint32_t paging_spilled(uint64_t managed) { return (uint32_t)(managed >> 32); }

#endif
