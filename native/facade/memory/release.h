/* Giving back what a block holds in the account. */
#ifndef LAMINA_RELEASE_H
#define LAMINA_RELEASE_H

#include "memory/blocks.h"

/* The driver has freed the block, or destroyed the context that it was in. */
void release_block(const struct block *block);

/* Removes the block's entry from the table of shared allocations, if it has one. */
void release_shared(const struct block *block);

#endif
