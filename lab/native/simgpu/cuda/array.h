/* Arrays and mipmapped arrays: device memory with a shape. */
#ifndef SIMGPU_ARRAY_H
#define SIMGPU_ARRAY_H

#include "cuda/exports.h"

CUdeviceptr array_start(CUarray array); /* 0 when it is none, or ended with its context */
size_t array_row_bytes(CUarray array);
size_t array_rows(CUarray array);

#endif
