#include "cuda/transfer.h"

#include "cuda/capture.h"
#include "cuda/context.h"
#include "cuda/place.h"

CUresult transfer_begin_sync(void)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    TRY(capture_check_absent(ctx));
    stream_wait_all(ctx);
    return CUDA_SUCCESS;
}

CUresult transfer_begin_async(CUstream handle, CUgraphNodeType node, bool *captured)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    *captured = stream->capture != NULL;
    return *captured ? capture_add_node(stream, node) : CUDA_SUCCESS;
}

/* Plain copies, between two addresses. */

static CUresult copy_host_to_device(CUdeviceptr to, const void *from, size_t bytes)
{
    struct place target;
    TRY(place_of_device(to, &target));
    return place_copy(target, place_of_host(from), bytes);
}

static CUresult copy_device_to_host(void *to, CUdeviceptr from, size_t bytes)
{
    struct place source;
    TRY(place_of_device(from, &source));
    return place_copy(place_of_host(to), source, bytes);
}

static CUresult copy_device_to_device(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    struct place source, target;
    TRY(place_of_device(from, &source));
    TRY(place_of_device(to, &target));
    return place_copy(target, source, bytes);
}

static CUresult copy_any_to_any(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return place_copy(place_of_unified(to), place_of_unified(from), bytes);
}

#define COPY(sync_name, async_name, copy, to_type, from_type)                                                          \
    SYNC_TRANSFER(sync_name, (to_type to, from_type from, size_t bytes), copy(to, from, bytes))                        \
    ASYNC_TRANSFER(async_name, (to_type to, from_type from, size_t bytes, CUstream stream), CU_GRAPH_NODE_TYPE_MEMCPY, \
                   copy(to, from, bytes))

COPY(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, copy_host_to_device, CUdeviceptr, const void *)
COPY(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, copy_device_to_host, void *, CUdeviceptr)
COPY(cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, copy_device_to_device, CUdeviceptr, CUdeviceptr)
COPY(cuMemcpy, cuMemcpyAsync, copy_any_to_any, CUdeviceptr, CUdeviceptr)

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t bytes)
{
    (void)to_ctx, (void)from_ctx;
    return cuMemcpyDtoD_v2(to, from, bytes);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t bytes,
                           CUstream stream)
{
    (void)to_ctx, (void)from_ctx;
    return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

/* Filling device memory with a value of 1, 2 or 4 bytes. */

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
