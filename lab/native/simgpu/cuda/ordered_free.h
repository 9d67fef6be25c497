/* Frees that are operations in a stream, like those of cuMemFreeAsync. Work that was submitted before may use the
 * memory, so it is taken until the GPU has come to the free. Call these with the driver's lock held. */
#ifndef SIMGPU_ORDERED_FREE_H
#define SIMGPU_ORDERED_FREE_H

#include "cuda/allocation.h"
#include "cuda/stream.h"

/* Calls `end` for the allocation once the GPU has come to its free. */
void ordered_free(struct allocation *a, CUstream stream, void (*end)(struct allocation *a));
/* Frees what the GPU has come to. */
void ordered_free_collect(void);
/* Makes memory that a pool is about to get back available for an allocation in the stream, which waits for it: what the
 * stream itself freed, and with new dependencies also what others did. */
void ordered_free_reuse(CUmemoryPool pool, CUstream stream, bool with_new_dependencies);
/* The allocation is being freed in another way. */
void ordered_free_forget(struct allocation *a);
void ordered_free_after_fork(void);

#endif
