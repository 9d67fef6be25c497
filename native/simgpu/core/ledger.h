/* Who holds how much memory of each GPU. Amounts are MiB. */
#ifndef SIMGPU_LEDGER_H
#define SIMGPU_LEDGER_H

#include "machine.h"

/* Takes `mib` for a slot. False when the GPU has not that much left: then nothing changed. */
bool ledger_take(const machine *m, uint32_t gpu, uint32_t slot, uint32_t mib);
/* Gives back what the slot took before. */
void ledger_give(const machine *m, uint32_t gpu, uint32_t slot, uint32_t mib);
/* Gives back a part of what another process's slot took, as long as the slot still belongs to it. */
void ledger_evict(const machine *m, uint32_t gpu, uint32_t slot, uint64_t identity, uint32_t mib);
/* Frees all that a dead process held but so much, as long as the slot still belongs to it. */
void ledger_reap(const machine *m, uint32_t gpu, uint32_t slot, uint64_t identity, uint32_t but);

uint32_t ledger_used(const machine *m, uint32_t gpu);
uint32_t ledger_held(const machine *m, uint32_t gpu, uint32_t slot);

#endif
