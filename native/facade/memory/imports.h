/* Memory shared with other processes. What counts where is decided in shared_allocations.h. */
#ifndef LAMINA_IMPORTS_H
#define LAMINA_IMPORTS_H

#include "cuda_min.h"
#include "lamina_layout.h"

/* Resets the lock, in a forked child. */
void imports_after_fork(void);

/* The key of a shared allocation, from the handle that the driver gives to other processes. */
uint64_t imports_key(const void *handle, size_t size);

/* Notes that this process lets others use its block. */
void imports_note_export(CUdeviceptr pointer, uint64_t key);

/* Notes that this process uses a shared allocation. When that does not fit, memory that is counted but no longer used
 * is given back first. NULL when it is refused. */
struct lamina_share *imports_note_use(struct lamina_slot *slot, uint64_t key, int device, uint64_t bytes);

#endif
