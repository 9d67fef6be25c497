/* Arrays and mipmapped arrays. What they take follows from their descriptor. */
#include "cuda/context_table.h"
#include "cuda/hooks.h"
#include "memory/blocks.h"
#include "memory/lending.h"
#include "memory/reserve.h"
#include "shared/usage_slots.h"

#include <stdint.h>

static uint64_t at_least_one(uint64_t value)
{
    return value == 0 ? 1 : value;
}

/* Bytes of one channel. A format that is not in the list counts as the widest one. */
static uint64_t channel_bytes(CUarray_format format)
{
    switch (format) {
    case 0x01: /* unsigned 8 */
    case 0x08: /* signed 8 */
    case 0xc0: /* normalized unsigned 8 */
    case 0xc6: /* normalized signed 8 */
        return 1;
    case 0x02: /* unsigned 16 */
    case 0x09: /* signed 16 */
    case 0x10: /* half */
    case 0xc3: /* normalized unsigned 16 */
    case 0xc9: /* normalized signed 16 */
        return 2;
    default: /* 32 bits: integers and float */
        return 4;
    }
}

static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned level)
{
    uint64_t layers = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) ? at_least_one(d->Depth) : 0;
    uint64_t bytes = multiply_saturating(channel_bytes(d->Format), at_least_one(d->NumChannels));
    bytes = multiply_saturating(bytes, at_least_one(d->Width >> level));
    bytes = multiply_saturating(bytes, at_least_one(d->Height >> level));
    return multiply_saturating(bytes, layers != 0 ? layers : at_least_one(d->Depth >> level));
}

static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
    uint64_t sum = 0;
    if (descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0; /* backed later, by memory that is counted when it is allocated */
    for (unsigned level = 0; level < levels && level < 64; level++) {
        uint64_t bytes = level_bytes(descriptor, level);
        sum = sum > UINT64_MAX - bytes ? UINT64_MAX : sum + bytes;
    }
    return sum;
}

/* The memory of an array that is being created: reserved, then recorded under the array's handle. */
struct creation {
    CUcontext context;
    int device;
    uint64_t bytes;
};

static CUresult begin_creation(struct creation *creation, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
    creation->device = context_device(&creation->context);
    if (creation->device < 0 || descriptor == NULL)
        creation->bytes = 0;
    else
        creation->bytes = whole_blocks(array_bytes(descriptor, levels));
    return creation->bytes == 0 ? CUDA_SUCCESS : reserve_fixed(creation->device, LAMINA_ARRAY, creation->bytes);
}

static CUresult destroy_array(enum block_class class, void *array)
{
    return class == BLOCK_ARRAY ? REAL(cuArrayDestroy)(array) : REAL(cuMipmappedArrayDestroy)(array);
}

/* The driver created the array, or did not. An array that cannot be recorded is destroyed. */
static CUresult commit_creation(const struct creation *creation, CUresult result, enum block_class class, void *array)
{
    struct block replaced, block = {.key = (uint64_t)(uintptr_t)array,
                                    .bytes = creation->bytes,
                                    .context = (uint64_t)(uintptr_t)creation->context,
                                    .class = class,
                                    .kind = LAMINA_ARRAY,
                                    .device = (uint8_t)creation->device};
    if (creation->bytes == 0)
        return result;
    if (result == CUDA_SUCCESS && blocks_put(&block, &replaced)) {
        if (replaced.class != 0)
            unreserve(replaced.device, replaced.kind, replaced.bytes);
        return CUDA_SUCCESS;
    }
    unreserve(creation->device, LAMINA_ARRAY, creation->bytes);
    if (result != CUDA_SUCCESS)
        return result;
    destroy_array(class, array);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
    struct creation creation;
    CUDA_ARRAY3D_DESCRIPTOR flat = {0};
    if (d != NULL)
        flat = (CUDA_ARRAY3D_DESCRIPTOR){d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
    CUresult result = begin_creation(&creation, d == NULL || array == NULL ? NULL : &flat, 1);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuArrayCreate_v2)(array, d);
    return commit_creation(&creation, result, BLOCK_ARRAY, array == NULL ? NULL : *array);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    struct creation creation;
    CUresult result = begin_creation(&creation, array == NULL ? NULL : descriptor, 1);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuArray3DCreate_v2)(array, descriptor);
    return commit_creation(&creation, result, BLOCK_ARRAY, array == NULL ? NULL : *array);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels)
{
    struct creation creation;
    CUresult result = begin_creation(&creation, array == NULL ? NULL : descriptor, levels);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMipmappedArrayCreate)(array, descriptor, levels);
    return commit_creation(&creation, result, BLOCK_MIPMAP, array == NULL ? NULL : *array);
}

static CUresult release_array(enum block_class class, void *array)
{
    struct block block, replaced;
    bool recorded = blocks_take(class, (uint64_t)(uintptr_t)array, &block);
    CUresult result = destroy_array(class, array);
    if (recorded && result != CUDA_SUCCESS)
        blocks_put(&block, &replaced);
    else if (recorded)
        unreserve(block.device, block.kind, block.bytes);
    return result;
}

CUresult cuArrayDestroy(CUarray array)
{
    return release_array(BLOCK_ARRAY, array);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    return release_array(BLOCK_MIPMAP, array);
}
