/* Address space for device memory. A device address is an address of this process too: a huge reservation that costs
 * nothing until data is copied into it. Call all of these with the driver's lock held. */
#ifndef SIMGPU_ARENA_H
#define SIMGPU_ARENA_H

#include "core/machine.h"
#include "cuda/exports.h"

#include <stdbool.h>
#include <stddef.h>

#define PAGE_BYTES (2 * MIB)

/* Addresses for this many bytes; 0 when there are none left. */
CUdeviceptr arena_reserve(size_t bytes);
void arena_release(CUdeviceptr start, size_t bytes);
/* What is at these pages: an allocation or a slab. NULL clears. */
void arena_set(CUdeviceptr start, size_t bytes, void *what);
void *arena_get(CUdeviceptr at);
bool arena_contains(CUdeviceptr at);
void arena_discard(CUdeviceptr start, size_t bytes); /* forgets data */
void arena_after_fork(void);

#endif
