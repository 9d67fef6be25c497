#include "release.h"

#include "hold.h"
#include "spill.h"

void release(const struct block *block)
{
    if (block->flags & BLOCK_SPILLED)
        spill_undo(block->device, block->bytes);
    give_back(block->device, block->kind, block->bytes);
}
