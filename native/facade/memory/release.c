#include "memory/release.h"

#include "cuda/process.h"
#include "memory/reserve.h"
#include "memory/small_blocks.h"
#include "memory/spill.h"
#include "shared/assertion.h"
#include "shared/shared_allocations.h"

void release_shared(const struct block *block)
{
    bool shared = block->class == BLOCK_IMPORT || block->flags & BLOCK_SHARED;
    struct lamina_slot *slot = shared ? process_slot_if_any() : NULL;
    const struct account *account = &facade_open()->account;
    if (slot != NULL)
        shared_drop(account, slot, shared_at(account, block->extra));
}

/* The export entry is removed before the bytes, so that in between the bytes count twice rather than not at all. */
void release_block(const struct block *block)
{
    ASSERT(block->class != 0);
    release_shared(block);
    if (block->flags & BLOCK_SPILLED)
        spill_undo(block->device, block->bytes, (uint64_t)block->extra << 20);
    if (block->flags & BLOCK_DIVIDED)
        small_blocks_leave(block->object);
    else if (block->class != BLOCK_IMPORT)
        unreserve(block->device, block->kind, block->bytes);
}
