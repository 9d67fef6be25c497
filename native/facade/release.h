/* Giving back what a block holds. */
#ifndef LAMINA_RELEASE_H
#define LAMINA_RELEASE_H

#include "blocks.h"

/* The driver has freed the block, or destroyed the context that it was in. */
void release(const struct block *block);

/* Its word that the block is shared, or that it is of others, is void. */
void release_share(const struct block *block);

#endif
