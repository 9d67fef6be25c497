/* Who holds how much memory of each GPU. Amounts are MiB.
 *
 * Example: a GPU has 100 MiB, of which 60 are used, and the newest step is number 7. Process A in slot 3 takes 30: it
 * replaces the ledger's word by (used 90, 30 more, slot 3, step 8) and is killed before it adds 30 to its cell. Process
 * B wants 20. It finishes step 8 first: slot 3's cell becomes (30 held, step 8). Then 90 + 20 are too much, and B is
 * refused. B frees what dead processes hold: 30 of slot 3, by step 9. Now B gets its 20 by step 10. */
#ifndef SIMGPU_LEDGER_H
#define SIMGPU_LEDGER_H

#include "core/machine.h"

/* Takes `mib` for a slot. False, and nothing changes, when the GPU does not have that much left. */
bool ledger_take(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib);
/* Gives back what the slot took before. */
void ledger_give(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib);
/* Gives back a part of what another process's slot took, as long as the slot still belongs to it. */
void ledger_evict(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t identity, uint32_t mib);
/* Frees all but `keep` of what a dead process held, as long as the slot still belongs to it. */
void ledger_reduce_to(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t identity, uint32_t keep);

uint32_t ledger_used(const struct machine *m, uint32_t gpu);
uint32_t ledger_held(const struct machine *m, uint32_t gpu, uint32_t slot);

#endif
