/* Small allocations: blocks of 2 MiB, each divided into equal pieces. Call all of these with the driver's lock held. */
#ifndef SIMGPU_SLAB_H
#define SIMGPU_SLAB_H

#include "cuda/allocation.h"

CUresult slab_allocate(CUcontext ctx, size_t size, struct allocation **out);
/* Whether what arena_get returned is a slab. */
bool slab_is_slab(const void *what);
/* The allocation at an address of a slab, or NULL. */
struct allocation *slab_find(void *found, CUdeviceptr at);

#endif
