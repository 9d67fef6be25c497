/* Memory with a device pointer. */
#ifndef LAMINA_MEMORY_H
#define LAMINA_MEMORY_H

#include "cuda_min.h"

#include "lamina_layout.h"

#include <stddef.h>
#include <stdint.h>

/* Books a block that the driver gave. When there is no memory for the entry, the block goes back to the driver. `flags`
 * are those of a block. */
CUresult memory_book(CUdeviceptr pointer, int device, CUcontext context, enum lamina_kind kind, uint64_t bytes,
                     uint8_t flags);

/* Managed memory in place of memory from a pool that cannot grow; CUDA_ERROR_OUT_OF_MEMORY where there is none. */
CUresult memory_spilled(CUdeviceptr *pointer, int device, CUcontext context, size_t bytes);

#endif
