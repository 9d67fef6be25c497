/* Memory with a device pointer. */
#ifndef LAMINA_MEMORY_H
#define LAMINA_MEMORY_H

#include "cuda_min.h"

#include <stddef.h>

/* Managed memory in place of memory from a pool that cannot grow; CUDA_ERROR_OUT_OF_MEMORY where there is none. */
CUresult memory_spilled(CUdeviceptr *pointer, int device, CUcontext context, size_t bytes);

#endif
