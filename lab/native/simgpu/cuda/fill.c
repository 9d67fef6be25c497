/* Filling device memory with a value of 1, 2 or 4 bytes. */
#include "cuda/place.h"
#include "cuda/transfer.h"

static CUresult fill(CUdeviceptr at, size_t pitch, const void *pattern, size_t width, size_t count, size_t rows)
{
    for (size_t row = 0; row < rows; row++) {
        struct place to;
        TRY(place_of_device(at + row * pitch, &to));
        TRY(place_fill(to, pattern, width, count));
    }
    return CUDA_SUCCESS;
}

#define FILL(name, type)                                                                                               \
    SYNC_TRANSFER(cuMemset##name##_v2, (CUdeviceptr at, type value, size_t count),                                     \
                  fill(at, 0, &value, sizeof value, count, 1))                                                         \
    ASYNC_TRANSFER(cuMemset##name##Async, (CUdeviceptr at, type value, size_t count, CUstream stream),                 \
                   CU_GRAPH_NODE_TYPE_MEMSET, fill(at, 0, &value, sizeof value, count, 1))

#define FILL_2D(name, type)                                                                                            \
    SYNC_TRANSFER(cuMemset##name##_v2, (CUdeviceptr at, size_t pitch, type value, size_t width, size_t rows),          \
                  fill(at, pitch, &value, sizeof value, width, rows))                                                  \
    ASYNC_TRANSFER(cuMemset##name##Async,                                                                              \
                   (CUdeviceptr at, size_t pitch, type value, size_t width, size_t rows, CUstream stream),             \
                   CU_GRAPH_NODE_TYPE_MEMSET, fill(at, pitch, &value, sizeof value, width, rows))

FILL(D8, unsigned char)
FILL(D16, unsigned short)
FILL(D32, unsigned int)
FILL_2D(D2D8, unsigned char)
FILL_2D(D2D16, unsigned short)
FILL_2D(D2D32, unsigned int)
