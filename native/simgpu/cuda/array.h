/* What copies need to know of arrays. */
#ifndef SIMGPU_ARRAY_H
#define SIMGPU_ARRAY_H

#include "driver.h"

CUdeviceptr array_start(CUarray array); /* 0 when it is none, or went with its context */
size_t array_row_bytes(CUarray array);
size_t array_rows(CUarray array);

#endif
