#include "release.h"

#include "hold.h"
#include "self.h"
#include "shares.h"
#include "spill.h"

void release_share(const struct block *block)
{
    bool shared = block->class == BLOCK_IMPORT || block->flags & BLOCK_SHARED;
    struct lamina_slot *slot = shared ? self_slot_if_any() : NULL;
    const struct account *account = &facade_open()->account;
    if (slot != NULL)
        shares_drop(account, slot, shares_at(account, block->extra));
}

/* An owner's word falls before its bytes do, so that those who use the allocation count in time. */
void release(const struct block *block)
{
    release_share(block);
    if (block->flags & BLOCK_SPILLED)
        spill_undo(block->device, block->bytes);
    if (block->class != BLOCK_IMPORT)
        give_back(block->device, block->kind, block->bytes);
}
