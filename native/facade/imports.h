/* Memory shared with other processes. */
#ifndef LAMINA_IMPORTS_H
#define LAMINA_IMPORTS_H

#include "cuda_min.h"
#include "lamina_layout.h"

/* Forgets the parent's lock, in a forked child. */
void imports_forget(void);

/* The key of a shared allocation, from what the driver names it with to other processes. */
uint64_t imports_key(const void *name, size_t size);

/* Says that this process lets others use its block. */
void imports_own(CUdeviceptr pointer, uint64_t key);

/* Says that this process uses a shared allocation; before a refusal, what is held only on paper is given back. NULL when
 * it is refused. */
struct lamina_share *imports_use(struct lamina_slot *slot, uint64_t key, int device, uint64_t bytes);

#endif
