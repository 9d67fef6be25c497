/* Copies of two and three dimensions, between memory of any kind. */
#include "cuda/array.h"
#include "cuda/place.h"
#include "cuda/transfer.h"

/* One side of a copy as the program describes it. Pitch and height of 0 stand for rows without space between. */
struct description {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device_at;
    CUarray array;
    size_t pitch, height, width;
    size_t x, y, z; /* where the copy begins; x in bytes */
};

/* The same with its memory found: where it starts, and how far apart its rows and layers are. */
struct side {
    struct place start;
    size_t pitch, layer, x, y, z;
};

static CUresult find_start(const struct description *d, struct place *start)
{
    switch (d->type) {
    case CU_MEMORYTYPE_HOST:
        *start = place_of_host(d->host);
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
        return place_of_device(d->device_at, start);
    case CU_MEMORYTYPE_UNIFIED:
        *start = place_of_unified(d->device_at);
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY:
        return place_of_array(d->array, 0, start);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult find_side(struct description d, struct side *out)
{
    TRY(find_start(&d, &out->start));
    bool array = d.type == CU_MEMORYTYPE_ARRAY;
    size_t pitch = array ? array_row_bytes(d.array) : d.pitch, height = array ? array_rows(d.array) : d.height;
    out->pitch = pitch != 0 ? pitch : d.width;
    out->layer = out->pitch * (height != 0 ? height : 1);
    out->x = d.x;
    out->y = d.y;
    out->z = d.z;
    return CUDA_SUCCESS;
}

static CUresult find_row(const struct side *side, size_t y, size_t z, struct place *row)
{
    *row = side->start;
    return place_move(row, (side->z + z) * side->layer + (side->y + y) * side->pitch + side->x);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c)
{
    struct side from, to;
    TRY(find_side((struct description){.type = c->srcMemoryType,
                                       .host = c->srcHost,
                                       .device_at = c->srcDevice,
                                       .array = c->srcArray,
                                       .pitch = c->srcPitch,
                                       .height = c->srcHeight,
                                       .width = c->WidthInBytes + c->srcXInBytes,
                                       .x = c->srcXInBytes,
                                       .y = c->srcY,
                                       .z = c->srcZ},
                  &from));
    TRY(find_side((struct description){.type = c->dstMemoryType,
                                       .host = c->dstHost,
                                       .device_at = c->dstDevice,
                                       .array = c->dstArray,
                                       .pitch = c->dstPitch,
                                       .height = c->dstHeight,
                                       .width = c->WidthInBytes + c->dstXInBytes,
                                       .x = c->dstXInBytes,
                                       .y = c->dstY,
                                       .z = c->dstZ},
                  &to));
    for (size_t z = 0; z < c->Depth; z++)
        for (size_t y = 0; y < c->Height; y++) {
            struct place source, target;
            TRY(find_row(&from, y, z, &source));
            TRY(find_row(&to, y, z, &target));
            TRY(place_copy(target, source, c->WidthInBytes));
        }
    return CUDA_SUCCESS;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c)
{
    CUDA_MEMCPY3D full = {
        .srcXInBytes = c->srcXInBytes,
        .srcY = c->srcY,
        .srcMemoryType = c->srcMemoryType,
        .srcHost = c->srcHost,
        .srcDevice = c->srcDevice,
        .srcArray = c->srcArray,
        .srcPitch = c->srcPitch,
        .dstXInBytes = c->dstXInBytes,
        .dstY = c->dstY,
        .dstMemoryType = c->dstMemoryType,
        .dstHost = c->dstHost,
        .dstDevice = c->dstDevice,
        .dstArray = c->dstArray,
        .dstPitch = c->dstPitch,
        .WidthInBytes = c->WidthInBytes,
        .Height = c->Height,
        .Depth = 1,
    };
    return copy_3d(&full);
}

#define SHAPED(sync_name, async_name, type, copy)                                                                      \
    CUresult sync_name(const type *shape)                                                                              \
    {                                                                                                                  \
        if (shape == NULL)                                                                                             \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        TRY(transfer_begin_sync());                                                                                    \
        return copy(shape);                                                                                            \
    }                                                                                                                  \
    CUresult async_name(const type *shape, CUstream stream)                                                            \
    {                                                                                                                  \
        bool captured;                                                                                                 \
        if (shape == NULL)                                                                                             \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        TRY(transfer_begin_async(stream, CU_GRAPH_NODE_TYPE_MEMCPY, &captured));                                       \
        return captured ? CUDA_SUCCESS : copy(shape);                                                                  \
    }

SHAPED(cuMemcpy2D_v2, cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copy_2d)
SHAPED(cuMemcpy3D_v2, cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy_3d)
SHAPED(cuMemcpy3DPeer, cuMemcpy3DPeerAsync, CUDA_MEMCPY3D, copy_3d)

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
    return cuMemcpy2D_v2(copy);
}

/* Copies of bytes to and from arrays. The asynchronous forms wait, too, as the driver's may. */

static CUresult copy_host_to_array(CUarray to, size_t offset, const void *from, size_t bytes)
{
    struct place target;
    TRY(place_of_array(to, offset, &target));
    return place_copy(target, place_of_host(from), bytes);
}

static CUresult copy_array_to_host(void *to, CUarray from, size_t offset, size_t bytes)
{
    struct place source;
    TRY(place_of_array(from, offset, &source));
    return place_copy(place_of_host(to), source, bytes);
}

static CUresult copy_device_to_array(CUarray to, size_t offset, CUdeviceptr from, size_t bytes)
{
    struct place target, source;
    TRY(place_of_array(to, offset, &target));
    TRY(place_of_device(from, &source));
    return place_copy(target, source, bytes);
}

static CUresult copy_array_to_device(CUdeviceptr to, CUarray from, size_t offset, size_t bytes)
{
    struct place target, source;
    TRY(place_of_device(to, &target));
    TRY(place_of_array(from, offset, &source));
    return place_copy(target, source, bytes);
}

static CUresult copy_array_to_array(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes)
{
    struct place target, source;
    TRY(place_of_array(to, to_offset, &target));
    TRY(place_of_array(from, from_offset, &source));
    return place_copy(target, source, bytes);
}

SYNC_TRANSFER(cuMemcpyHtoA_v2, (CUarray to, size_t offset, const void *from, size_t bytes),
              copy_host_to_array(to, offset, from, bytes))
SYNC_TRANSFER(cuMemcpyAtoH_v2, (void *to, CUarray from, size_t offset, size_t bytes),
              copy_array_to_host(to, from, offset, bytes))
SYNC_TRANSFER(cuMemcpyDtoA_v2, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
              copy_device_to_array(to, offset, from, bytes))
SYNC_TRANSFER(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes),
              copy_array_to_device(to, from, offset, bytes))
SYNC_TRANSFER(cuMemcpyAtoA_v2, (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
              copy_array_to_array(to, to_offset, from, from_offset, bytes))

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyHtoA_v2(to, offset, from, bytes);
}

CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyAtoH_v2(to, from, offset, bytes);
}
