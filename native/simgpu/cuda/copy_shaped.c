/* Transfers to and from arrays, and those of two and three dimensions. */
#include "array.h"
#include "capture.h"
#include "copy.h"

static CUresult linear(place to, CUresult to_result, place from, CUresult from_result, size_t bytes) {
    CUresult result = transfer_start(true);
    if (result == CUDA_SUCCESS) result = to_result;
    if (result == CUDA_SUCCESS) result = from_result;
    return result == CUDA_SUCCESS ? copy_bytes(to, from, bytes) : result;
}

SIM_API CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes) {
    place target;
    CUresult result = place_array(to, offset, &target);
    return linear(target, result, place_host(from), CUDA_SUCCESS, bytes);
}

SIM_API CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes) {
    place source;
    CUresult result = place_array(from, offset, &source);
    return linear(place_host(to), CUDA_SUCCESS, source, result, bytes);
}

SIM_API CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
    place target, source;
    CUresult result = place_array(to, offset, &target), other = place_device(from, &source);
    return linear(target, result, source, other, bytes);
}

SIM_API CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
    place target, source;
    CUresult result = place_device(to, &target), other = place_array(from, offset, &source);
    return linear(target, result, source, other, bytes);
}

SIM_API CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
    place target, source;
    CUresult result = place_array(to, to_offset, &target), other = place_array(from, from_offset, &source);
    return linear(target, result, source, other, bytes);
}

SIM_API CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream) {
    (void)stream;
    return cuMemcpyHtoA_v2(to, offset, from, bytes);
}

SIM_API CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
    (void)stream;
    return cuMemcpyAtoH_v2(to, from, offset, bytes);
}

/* One side of a shaped transfer: where it starts, and how far apart its rows and layers are. */
typedef struct {
    place start;
    size_t pitch, layer;
} side;

static CUresult side_of(CUmemorytype type, const void *host, CUdeviceptr device_at, CUarray array, size_t pitch,
                        size_t height, size_t width, side *out) {
    CUresult result = CUDA_SUCCESS;
    switch (type) {
    case CU_MEMORYTYPE_HOST: out->start = place_host(host); break;
    case CU_MEMORYTYPE_DEVICE: result = place_device(device_at, &out->start); break;
    case CU_MEMORYTYPE_UNIFIED: out->start = place_unified(device_at); break;
    case CU_MEMORYTYPE_ARRAY:
        result = place_array(array, 0, &out->start);
        pitch = array_row_bytes(array);
        height = array_rows(array);
        break;
    default: result = CUDA_ERROR_INVALID_VALUE;
    }
    out->pitch = pitch != 0 ? pitch : width;
    out->layer = out->pitch * (height != 0 ? height : 1);
    return result;
}

static CUresult move(place *p, size_t offset) {
    if (offset > p->length) return CUDA_ERROR_INVALID_VALUE;
    p->at += offset;
    p->length -= offset;
    p->stored = p->stored > offset ? p->stored - offset : 0;
    return CUDA_SUCCESS;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c) {
    side from, to;
    CUresult result = side_of(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcPitch, c->srcHeight,
                              c->WidthInBytes + c->srcXInBytes, &from);
    if (result == CUDA_SUCCESS)
        result = side_of(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstPitch, c->dstHeight,
                         c->WidthInBytes + c->dstXInBytes, &to);
    for (size_t z = 0; z < c->Depth && result == CUDA_SUCCESS; z++)
        for (size_t y = 0; y < c->Height && result == CUDA_SUCCESS; y++) {
            place source = from.start, target = to.start;
            result = move(&source, (c->srcZ + z) * from.layer + (c->srcY + y) * from.pitch + c->srcXInBytes);
            if (result == CUDA_SUCCESS)
                result = move(&target, (c->dstZ + z) * to.layer + (c->dstY + y) * to.pitch + c->dstXInBytes);
            if (result == CUDA_SUCCESS) result = copy_bytes(target, source, c->WidthInBytes);
        }
    return result;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c) {
    CUDA_MEMCPY3D full = {
        .srcXInBytes = c->srcXInBytes, .srcY = c->srcY, .srcMemoryType = c->srcMemoryType, .srcHost = c->srcHost,
        .srcDevice = c->srcDevice, .srcArray = c->srcArray, .srcPitch = c->srcPitch, .dstXInBytes = c->dstXInBytes,
        .dstY = c->dstY, .dstMemoryType = c->dstMemoryType, .dstHost = c->dstHost, .dstDevice = c->dstDevice,
        .dstArray = c->dstArray, .dstPitch = c->dstPitch, .WidthInBytes = c->WidthInBytes, .Height = c->Height, .Depth = 1,
    };
    return copy_3d(&full);
}

#define SHAPED(sync_name, async_name, type, work)                                         \
    SIM_API CUresult sync_name(const type *copy) {                                        \
        CUresult result = copy != NULL ? transfer_start(true) : CUDA_ERROR_INVALID_VALUE; \
        return result == CUDA_SUCCESS ? work(copy) : result;                              \
    }                                                                                     \
    SIM_API CUresult async_name(const type *copy, CUstream stream) {                      \
        CUresult result = copy != NULL ? transfer_start(false) : CUDA_ERROR_INVALID_VALUE; \
        if (result != CUDA_SUCCESS) return result;                                        \
        if (transfer_captured(stream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result; \
        return work(copy);                                                                \
    }

SHAPED(cuMemcpy2D_v2, cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copy_2d)
SHAPED(cuMemcpy3D_v2, cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy_3d)
SHAPED(cuMemcpy3DPeer, cuMemcpy3DPeerAsync, CUDA_MEMCPY3D, copy_3d)

SIM_API CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy) { return cuMemcpy2D_v2(copy); }
