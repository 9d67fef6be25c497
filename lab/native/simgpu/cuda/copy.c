/* Plain copies, between two addresses. */
#include "cuda/place.h"
#include "cuda/transfer.h"

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
