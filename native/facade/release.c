#include "release.h"

#include "hold.h"
#include "self.h"
#include "shares.h"
#include "spill.h"

static void drop_share(uint32_t index)
{
    struct lamina_slot *slot = self_slot_if_any();
    const struct account *account = &facade_open()->account;
    if (slot != NULL)
        shares_drop(account, slot, shares_at(account, index));
}

/* An owner's word falls before its bytes do, so that those who use the allocation count in time. */
void release(const struct block *block)
{
    if (block->class == BLOCK_IMPORT || block->flags & BLOCK_SHARED)
        drop_share(block->extra);
    if (block->flags & BLOCK_SPILLED)
        spill_undo(block->device, block->bytes);
    if (block->class != BLOCK_IMPORT)
        give_back(block->device, block->kind, block->bytes);
}
