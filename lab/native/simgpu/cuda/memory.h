/* Device memory inside one process. Call all of these with the driver's lock held.
 *
 * Small allocations share blocks (slab.h), others have pages of their own. Each kind of memory has a file that sets
 * `release` to free what it alone knows of. */
#ifndef SIMGPU_MEMORY_H
#define SIMGPU_MEMORY_H

#include "cuda/allocation.h"
#include "cuda/arena.h"
#include "cuda/context.h"

CUresult memory_allocate(CUcontext ctx, enum allocation_kind kind, size_t size, struct allocation **out);
void memory_free(struct allocation *a);
void memory_free_all(CUcontext ctx);
/* The allocation that an address is in, or NULL. */
struct allocation *memory_find(CUdeviceptr at);
/* The allocation ends with the context. */
void memory_link(CUcontext ctx, struct allocation *a);

#endif
