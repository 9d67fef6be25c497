/* Memory pools: they hold memory beyond what is allocated from them, so the account follows what each pool has
 * reserved from the driver, not what the program asked it for. */
#ifndef LAMINA_POOLS_H
#define LAMINA_POOLS_H

#include "blocks.h"

/* Brings the account to what this process's pools hold now. */
void pools_refresh(void);

/* The same, and nothing at all while no pool can have shrunk since the last time. */
void pools_refresh_if_freed(void);

/* A block of kind LAMINA_POOL was freed. */
void pools_freed(const struct block *block);

/* Forgets all pools, in a forked child. */
void pools_forget(void);

#endif
