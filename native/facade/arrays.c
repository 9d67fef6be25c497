/* Arrays and mipmapped arrays: what they take follows from their description. */
#include "blocks.h"
#include "contexts.h"
#include "hold.h"
#include "hooks.h"

#include <stdint.h>

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t at_least_one(uint64_t value)
{
    return value == 0 ? 1 : value;
}

/* Bytes of one channel. A format that is not in the list counts as the widest there is. */
static uint64_t channel_bytes(CUarray_format format)
{
    switch (format) {
    case 0x01: /* unsigned 8 */
    case 0x08: /* signed 8 */
    case 0xc0: /* normalised 8 */
    case 0xc3:
        return 1;
    case 0x02: /* unsigned 16 */
    case 0x09: /* signed 16 */
    case 0x10: /* half */
    case 0xc6: /* normalised 16 */
    case 0xc9:
        return 2;
    default: /* 32 bits: integers and float */
        return 4;
    }
}

static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned level)
{
    uint64_t layers = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) ? at_least_one(d->Depth) : 0;
    uint64_t bytes = times(channel_bytes(d->Format), at_least_one(d->NumChannels));
    bytes = times(bytes, at_least_one(d->Width >> level));
    bytes = times(bytes, at_least_one(d->Height >> level));
    return times(bytes, layers != 0 ? layers : at_least_one(d->Depth >> level));
}

static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
    uint64_t sum = 0;
    if (descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0; /* backed later, by memory that is counted where it is made */
    for (unsigned level = 0; level < levels && level < 64; level++) {
        uint64_t bytes = level_bytes(descriptor, level);
        sum = sum > UINT64_MAX - bytes ? UINT64_MAX : sum + bytes;
    }
    return sum;
}

/* The memory of an array that is being made: announced, then booked under the array's handle. */
struct making {
    CUcontext context;
    int device;
    uint64_t bytes;
};

static CUresult announce(struct making *making, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
    making->device = context_device(&making->context);
    if (making->device < 0 || descriptor == NULL)
        making->bytes = 0;
    else
        making->bytes = in_blocks(array_bytes(descriptor, levels));
    return making->bytes == 0 ? CUDA_SUCCESS : hold(making->device, LAMINA_ARRAY, making->bytes);
}

/* False when the booking failed and the array must go again. */
static bool made(const struct making *making, CUresult result, enum block_class class, const void *array)
{
    struct block replaced, block = {.key = (uint64_t)(uintptr_t)array, .bytes = making->bytes,
                                    .context = (uint64_t)(uintptr_t)making->context, .class = class,
                                    .kind = LAMINA_ARRAY, .device = (uint8_t)making->device};
    if (making->bytes == 0)
        return true;
    if (result == CUDA_SUCCESS && blocks_put(&block, &replaced)) {
        if (replaced.class != 0)
            give_back(replaced.device, replaced.kind, replaced.bytes);
        return true;
    }
    give_back(making->device, LAMINA_ARRAY, making->bytes);
    return result != CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
    struct making making;
    CUDA_ARRAY3D_DESCRIPTOR flat = {0};
    if (d != NULL)
        flat = (CUDA_ARRAY3D_DESCRIPTOR){d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
    CUresult result = announce(&making, d == NULL || array == NULL ? NULL : &flat, 1);
    if (result == CUDA_SUCCESS) {
        result = REAL(cuArrayCreate_v2)(array, d);
        if (!made(&making, result, BLOCK_ARRAY, array == NULL ? NULL : *array)) {
            REAL(cuArrayDestroy)(*array);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return result;
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    struct making making;
    CUresult result = announce(&making, array == NULL ? NULL : descriptor, 1);
    if (result == CUDA_SUCCESS) {
        result = REAL(cuArray3DCreate_v2)(array, descriptor);
        if (!made(&making, result, BLOCK_ARRAY, array == NULL ? NULL : *array)) {
            REAL(cuArrayDestroy)(*array);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return result;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels)
{
    struct making making;
    CUresult result = announce(&making, array == NULL ? NULL : descriptor, levels);
    if (result == CUDA_SUCCESS) {
        result = REAL(cuMipmappedArrayCreate)(array, descriptor, levels);
        if (!made(&making, result, BLOCK_MIPMAP, array == NULL ? NULL : *array)) {
            REAL(cuMipmappedArrayDestroy)(*array);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return result;
}

static CUresult destroyed(bool booked, const struct block *block, CUresult result)
{
    struct block replaced;
    if (booked && result != CUDA_SUCCESS)
        blocks_put(block, &replaced);
    else if (booked)
        give_back(block->device, block->kind, block->bytes);
    return result;
}

CUresult cuArrayDestroy(CUarray array)
{
    struct block block;
    bool booked = blocks_take(BLOCK_ARRAY, (uint64_t)(uintptr_t)array, &block);
    return destroyed(booked, &block, REAL(cuArrayDestroy)(array));
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    struct block block;
    bool booked = blocks_take(BLOCK_MIPMAP, (uint64_t)(uintptr_t)array, &block);
    return destroyed(booked, &block, REAL(cuMipmappedArrayDestroy)(array));
}
