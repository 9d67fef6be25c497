#include "cuda/array.h"

#include "cuda/charge.h"
#include "cuda/driver.h"
#include "cuda/memory.h"

#include <stdlib.h>

#define ARRAY_MAGIC 0x41525259
#define MAX_LEVELS 32

struct CUarray_st {
    uint32_t magic;
    CUDA_ARRAY3D_DESCRIPTOR shape;
    struct allocation *memory; /* NULL: a level of a mipmapped array, which owns the memory */
    CUmipmappedArray of;
};

struct CUmipmappedArray_st {
    uint32_t magic, levels;
    struct allocation *memory;
    struct CUarray_st level[];
};

static bool is_array(CUarray array)
{
    return array != NULL && array->magic == ARRAY_MAGIC;
}

static bool is_mipmapped(CUmipmappedArray m)
{
    return m != NULL && m->magic == ARRAY_MAGIC;
}

/* Memory that a handle refers to, until it ends with its context. */
static CUresult allocate(CUcontext ctx, size_t bytes, struct allocation **memory)
{
    driver_lock();
    CUresult result = memory_allocate(ctx, KIND_ARRAY, bytes, memory);
    if (result == CUDA_SUCCESS)
        (*memory)->extra = memory;
    driver_unlock();
    return result;
}

static size_t element_bytes(CUarray_format format)
{
    switch (format) {
    case 0x01:
    case 0x08:
    case 0xc0:
    case 0xc6:
        return 1;
    case 0x02:
    case 0x09:
    case 0x10:
    case 0xc3:
    case 0xc9:
        return 2;
    case 0x03:
    case 0x0a:
    case 0x20:
        return 4;
    default:
        return 0;
    }
}

/* Bytes of a shape; 0 when it is invalid. */
static size_t shape_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    size_t element = element_bytes(d->Format) * d->NumChannels, bytes;
    if (element == 0 || d->Width == 0 || (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4))
        return 0;
    if (__builtin_mul_overflow(d->Width, element, &bytes))
        return 0;
    if (__builtin_mul_overflow(bytes, d->Height != 0 ? d->Height : 1, &bytes))
        return 0;
    if (__builtin_mul_overflow(bytes, d->Depth != 0 ? d->Depth : 1, &bytes))
        return 0;
    return bytes;
}

CUdeviceptr array_start(CUarray array)
{
    if (!is_array(array))
        return 0;
    if (array->of == NULL)
        return array->memory != NULL ? array->memory->start : 0;
    CUdeviceptr at = array->of->memory != NULL ? array->of->memory->start : 0;
    for (CUarray level = array->of->level; at != 0 && level != array; level++)
        at += shape_bytes(&level->shape);
    return at;
}

size_t array_row_bytes(CUarray array)
{
    return array->shape.Width * element_bytes(array->shape.Format) * array->shape.NumChannels;
}

size_t array_rows(CUarray array)
{
    return array->shape.Height != 0 ? array->shape.Height : 1;
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    size_t bytes = out != NULL && shape != NULL ? shape_bytes(shape) : 0;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (shape->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return CUDA_ERROR_NOT_SUPPORTED;
    CUarray array = calloc(1, sizeof *array);
    if (array == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = allocate(ctx, bytes, &array->memory);
    if (result != CUDA_SUCCESS) {
        free(array);
        return result;
    }
    array->magic = ARRAY_MAGIC;
    array->shape = *shape;
    *out = array;
    return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *shape)
{
    if (shape == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR full = {
        .Width = shape->Width, .Height = shape->Height, .Format = shape->Format, .NumChannels = shape->NumChannels};
    return cuArray3DCreate_v2(out, &full);
}

CUresult cuArrayDestroy(CUarray array)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (!is_array(array) || array->of != NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    driver_lock();
    memory_free(array->memory);
    array->magic = 0;
    driver_unlock();
    free(array);
    return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *shape, CUarray array)
{
    if (!is_array(array) || shape == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *shape = array->shape;
    return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *shape, CUarray array)
{
    if (!is_array(array) || shape == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *shape = (CUDA_ARRAY_DESCRIPTOR){.Width = array->shape.Width,
                                     .Height = array->shape.Height,
                                     .Format = array->shape.Format,
                                     .NumChannels = array->shape.NumChannels};
    return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray array, CUdevice ordinal)
{
    if (!is_array(array) || out == NULL || device_at(ordinal) == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = charge_round_up_mib(shape_bytes(&array->shape)) * MIB,
                                            .alignment = PAGE_BYTES};
    return CUDA_SUCCESS;
}

/* The shape of the next level: half of each length, down to 1. */
static CUDA_ARRAY3D_DESCRIPTOR halve(CUDA_ARRAY3D_DESCRIPTOR shape)
{
    shape.Width = shape.Width > 1 ? shape.Width / 2 : 1;
    shape.Height = shape.Height > 1 ? shape.Height / 2 : shape.Height;
    shape.Depth = shape.Depth > 1 ? shape.Depth / 2 : shape.Depth;
    return shape;
}

/* Adds at most this many levels, up to that of one element. Returns the bytes of all. */
static size_t add_levels(CUmipmappedArray m, CUDA_ARRAY3D_DESCRIPTOR shape, unsigned int most)
{
    size_t bytes = 0;
    bool last = false;
    for (; m->levels < most && !last; m->levels++) {
        m->level[m->levels] = (struct CUarray_st){.magic = ARRAY_MAGIC, .shape = shape, .of = m};
        bytes += shape_bytes(&shape);
        last = shape.Width <= 1 && shape.Height <= 1 && shape.Depth <= 1;
        shape = halve(shape);
    }
    return bytes;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (out == NULL || shape == NULL || levels == 0 || shape_bytes(shape) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned int most = levels < MAX_LEVELS ? levels : MAX_LEVELS;
    CUmipmappedArray m = calloc(1, sizeof *m + most * sizeof m->level[0]);
    if (m == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = allocate(ctx, add_levels(m, *shape, most), &m->memory);
    if (result != CUDA_SUCCESS) {
        free(m);
        return result;
    }
    m->magic = ARRAY_MAGIC;
    *out = m;
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray m, unsigned int level)
{
    if (!is_mipmapped(m) || out == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (level >= m->levels)
        return CUDA_ERROR_INVALID_VALUE;
    *out = &m->level[level];
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray m)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (!is_mipmapped(m))
        return CUDA_ERROR_INVALID_HANDLE;
    driver_lock();
    memory_free(m->memory);
    m->magic = 0;
    driver_unlock();
    free(m);
    return CUDA_SUCCESS;
}
