/* Filling device memory. */
#include <string.h>

#include "capture.h"
#include "copy.h"

CUresult set_bytes(place to, const void *pattern, size_t width, size_t count) {
    if (count > to.length / width) return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = count * width, kept = bytes < to.stored ? bytes : to.stored;
    static const char zeros[4];
    if (to.of != NULL && !to.of->touched && memcmp(pattern, zeros, width) == 0) return CUDA_SUCCESS;
    for (size_t i = 0; i < kept; i++) to.at[i] = ((const char *)pattern)[i % width];
    if (to.of != NULL) to.of->touched = true;
    return CUDA_SUCCESS;
}

static CUresult fill(CUdeviceptr at, size_t pitch, const void *pattern, size_t width, size_t count, size_t rows) {
    CUresult result = CUDA_SUCCESS;
    for (size_t row = 0; row < rows && result == CUDA_SUCCESS; row++) {
        place to;
        result = place_device(at + row * pitch, &to);
        if (result == CUDA_SUCCESS) result = set_bytes(to, pattern, width, count);
    }
    return result;
}

#define FILL(name, type)                                                                                       \
    SIM_API CUresult cuMemset##name##_v2(CUdeviceptr at, type value, size_t count) {                           \
        CUresult result = transfer_start(true);                                                                \
        return result == CUDA_SUCCESS ? fill(at, 0, &value, sizeof value, count, 1) : result;                  \
    }                                                                                                          \
    SIM_API CUresult cuMemset##name##Async(CUdeviceptr at, type value, size_t count, CUstream stream) {        \
        CUresult result = transfer_start(false);                                                               \
        if (result != CUDA_SUCCESS) return result;                                                             \
        if (transfer_captured(stream, CU_GRAPH_NODE_TYPE_MEMSET, &result)) return result;                      \
        return fill(at, 0, &value, sizeof value, count, 1);                                                    \
    }

#define FILL_2D(name, type)                                                                                    \
    SIM_API CUresult cuMemset##name##_v2(CUdeviceptr at, size_t pitch, type value, size_t width, size_t rows) { \
        CUresult result = transfer_start(true);                                                                \
        return result == CUDA_SUCCESS ? fill(at, pitch, &value, sizeof value, width, rows) : result;           \
    }                                                                                                          \
    SIM_API CUresult cuMemset##name##Async(CUdeviceptr at, size_t pitch, type value, size_t width, size_t rows, \
                                           CUstream stream) {                                                  \
        CUresult result = transfer_start(false);                                                               \
        if (result != CUDA_SUCCESS) return result;                                                             \
        if (transfer_captured(stream, CU_GRAPH_NODE_TYPE_MEMSET, &result)) return result;                      \
        return fill(at, pitch, &value, sizeof value, width, rows);                                             \
    }

FILL(D8, unsigned char)
FILL(D16, unsigned short)
FILL(D32, unsigned int)
FILL_2D(D2D8, unsigned char)
FILL_2D(D2D16, unsigned short)
FILL_2D(D2D32, unsigned int)
