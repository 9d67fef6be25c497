/* Memory pools. They hold memory beyond what is allocated from them, so the account follows what each pool has reserved
 * from the driver, not what the program requested from the pool. */
#ifndef LAMINA_POOLS_H
#define LAMINA_POOLS_H

#include "memory/blocks.h"

/* Updates the account to what this process's pools hold now. */
void pools_refresh(void);

/* The same, but does nothing while no pool can have shrunk since the last time. */
void pools_refresh_if_shrunk(void);

/* A block of kind LAMINA_POOL was freed. */
void pools_note_free(const struct block *block);

/* Drops all pools, in a forked child. */
void pools_after_fork(void);

#endif
