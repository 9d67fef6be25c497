/* Plain transfers. They take no time on the simulated GPU. */
#include "copy.h"

#include <string.h>

#include "array.h"
#include "capture.h"

CUresult place_device(CUdeviceptr at, place *p) {
    driver_lock();
    allocation *a = memory_find(at);
    driver_unlock();
    if (a == NULL) return CUDA_ERROR_INVALID_VALUE;
    size_t offset = at - a->start;
    size_t stored = a->kind == KIND_MANAGED ? a->size : STORED_BYTES;
    *p = (place){.at = (char *)(uintptr_t)at, .length = a->size - offset, .stored = stored > offset ? stored - offset : 0,
                 .of = a};
    return CUDA_SUCCESS;
}

CUresult place_array(CUarray array, size_t offset, place *p) {
    CUdeviceptr start = array_start(array);
    return start != 0 ? place_device(start + offset, p) : CUDA_ERROR_INVALID_HANDLE;
}

place place_host(const void *at) { return (place){.at = (char *)(uintptr_t)at, .length = SIZE_MAX, .stored = SIZE_MAX}; }

place place_unified(CUdeviceptr at) {
    place p;
    return place_device(at, &p) == CUDA_SUCCESS ? p : place_host((void *)(uintptr_t)at);
}

CUresult copy_bytes(place to, place from, size_t bytes) {
    if (bytes > to.length || bytes > from.length || to.at == NULL || from.at == NULL)
        return bytes == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    size_t kept = bytes < to.stored ? bytes : to.stored;
    size_t real = kept < from.stored ? kept : from.stored;
    /* Copying untouched memory onto untouched memory would only turn nothing into zeros. */
    bool nothing = to.of != NULL && !to.of->touched && from.of != NULL && !from.of->touched;
    if (nothing) return CUDA_SUCCESS;
    memmove(to.at, from.at, real);
    if (real < kept) memset(to.at + real, 0, kept - real);
    if (to.of != NULL) to.of->touched = true;
    return CUDA_SUCCESS;
}

CUresult transfer_start(bool wait) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result == CUDA_SUCCESS && wait) {
        result = stream_uncaptured(ctx);
        if (result == CUDA_SUCCESS) context_finish(ctx);
    }
    return result;
}

bool transfer_captured(CUstream handle, int node_type, CUresult *result) {
    CUstream stream;
    *result = stream_resolve(handle, &stream);
    if (*result != CUDA_SUCCESS) return true;
    if (stream->capture == NULL) return false;
    *result = capture_node(stream, node_type);
    return true;
}

static CUresult host_to_device(CUdeviceptr to, const void *from, size_t bytes) {
    place device_place;
    CUresult result = place_device(to, &device_place);
    return result == CUDA_SUCCESS ? copy_bytes(device_place, place_host(from), bytes) : result;
}

static CUresult device_to_host(void *to, CUdeviceptr from, size_t bytes) {
    place device_place;
    CUresult result = place_device(from, &device_place);
    return result == CUDA_SUCCESS ? copy_bytes(place_host(to), device_place, bytes) : result;
}

static CUresult device_to_device(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    place source, target;
    CUresult result = place_device(from, &source);
    if (result == CUDA_SUCCESS) result = place_device(to, &target);
    return result == CUDA_SUCCESS ? copy_bytes(target, source, bytes) : result;
}

static CUresult any_to_any(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy_bytes(place_unified(to), place_unified(from), bytes);
}

/* One transfer in its two forms. */
#define TRANSFER(sync_name, async_name, work, to_type, from_type)                          \
    SIM_API CUresult sync_name(to_type to, from_type from, size_t bytes) {                 \
        CUresult result = transfer_start(true);                                            \
        return result == CUDA_SUCCESS ? work(to, from, bytes) : result;                    \
    }                                                                                      \
    SIM_API CUresult async_name(to_type to, from_type from, size_t bytes, CUstream stream) { \
        CUresult result = transfer_start(false);                                           \
        if (result != CUDA_SUCCESS) return result;                                         \
        if (transfer_captured(stream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result;  \
        return work(to, from, bytes);                                                      \
    }

TRANSFER(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, host_to_device, CUdeviceptr, const void *)
TRANSFER(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, device_to_host, void *, CUdeviceptr)
TRANSFER(cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, device_to_device, CUdeviceptr, CUdeviceptr)
TRANSFER(cuMemcpy, cuMemcpyAsync, any_to_any, CUdeviceptr, CUdeviceptr)

SIM_API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t bytes) {
    (void)to_ctx, (void)from_ctx;
    return cuMemcpyDtoD_v2(to, from, bytes);
}

SIM_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t bytes,
                                   CUstream stream) {
    (void)to_ctx, (void)from_ctx;
    return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
