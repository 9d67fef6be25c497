/* Plain, managed and pitched memory, and freeing of whatever has a device pointer. */
#include "blocks.h"
#include "contexts.h"
#include "graphs.h"
#include "hold.h"
#include "hooks.h"
#include "memory.h"
#include "pools.h"
#include "release.h"
#include "spill.h"

#include <stdint.h>

/* Pitches are multiples of this at least; the real one is known only afterwards. */
enum { PITCH_ALIGNMENT = 512 };

CUresult memory_book(CUdeviceptr pointer, int device, CUcontext context, enum lamina_kind kind, uint64_t bytes,
                     uint8_t flags)
{
    struct block replaced, block = {.key = pointer, .bytes = bytes, .context = (uint64_t)(uintptr_t)context,
                                    .class = BLOCK_POINTER, .kind = (uint8_t)kind, .device = (uint8_t)device,
                                    .flags = flags};
    if (!blocks_put(&block, &replaced)) {
        REAL(cuMemFree_v2)(pointer);
        release(&block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (replaced.class != 0)
        release(&replaced);
    return CUDA_SUCCESS;
}

/* Plain memory, or managed memory in its place. Small requests share blocks and are not worth a move. */
static CUresult make(CUdeviceptr *pointer, int device, size_t bytes, uint64_t taken, uint8_t *flags)
{
    CUresult result = !is_small(bytes) && spill_due(device) ? CUDA_ERROR_OUT_OF_MEMORY : REAL(cuMemAlloc_v2)(pointer, bytes);
    *flags = 0;
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    result = spill(pointer, device, bytes, taken);
    *flags = result == CUDA_SUCCESS ? BLOCK_SPILLED : 0;
    return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || pointer == NULL || bytes == 0)
        return REAL(cuMemAlloc_v2)(pointer, bytes); /* for the driver's own answer */
    uint8_t flags;
    uint64_t taken = in_blocks(bytes);
    CUresult result = hold(device, LAMINA_DATA, taken);
    if (result != CUDA_SUCCESS)
        return result;
    result = make(pointer, device, bytes, taken, &flags);
    if (result == CUDA_SUCCESS)
        return memory_book(*pointer, device, context, LAMINA_DATA, taken, flags);
    give_back(device, LAMINA_DATA, taken);
    return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || pointer == NULL || bytes == 0)
        return REAL(cuMemAllocManaged)(pointer, bytes, flags);
    uint64_t taken = in_blocks(bytes);
    CUresult result = hold(device, LAMINA_MANAGED, taken);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMemAllocManaged)(pointer, bytes, flags);
    if (result == CUDA_SUCCESS)
        return memory_book(*pointer, device, context, LAMINA_MANAGED, taken, 0);
    give_back(device, LAMINA_MANAGED, taken);
    return result;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t pitched(uint64_t width, uint64_t height)
{
    return times(times((width - 1) / PITCH_ALIGNMENT + 1, PITCH_ALIGNMENT), height);
}

/* The driver has chosen the pitch: what it really takes is now known. */
static CUresult book_pitched(CUdeviceptr pointer, int device, CUcontext context, uint64_t announced, uint64_t real)
{
    CUresult result = hold_adjust(device, LAMINA_DATA, announced, real);
    if (result == CUDA_SUCCESS)
        return memory_book(pointer, device, context, LAMINA_DATA, real, 0);
    REAL(cuMemFree_v2)(pointer);
    give_back(device, LAMINA_DATA, announced);
    return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || pointer == NULL || pitch == NULL || width == 0 || height == 0)
        return REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    uint64_t announced = in_blocks(pitched(width, height));
    CUresult result = hold(device, LAMINA_DATA, announced);
    if (result != CUDA_SUCCESS)
        return result;
    result = spill_due(device) ? CUDA_ERROR_OUT_OF_MEMORY
                               : REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && spill(pointer, device, pitched(width, height), announced) == CUDA_SUCCESS) {
        *pitch = pitched(width, 1);
        return memory_book(*pointer, device, context, LAMINA_DATA, announced, BLOCK_SPILLED);
    }
    if (result == CUDA_SUCCESS)
        return book_pitched(*pointer, device, context, announced, in_blocks(times(*pitch, height)));
    give_back(device, LAMINA_DATA, announced);
    return result;
}

/* The entry went before the driver's call, since the address may come again at once, and comes back if that failed. */
static CUresult freed(bool booked, const struct block *block, CUresult result)
{
    struct block replaced;
    if (!booked)
        return result;
    if (result != CUDA_SUCCESS)
        blocks_put(block, &replaced);
    else if (block->kind == LAMINA_POOL) {
        release_share(block);
        pools_freed(block);
    } else
        release(block);
    return result;
}

CUresult memory_spilled(CUdeviceptr *pointer, int device, CUcontext context, size_t bytes)
{
    uint64_t taken = in_blocks(bytes);
    CUresult result = hold(device, LAMINA_DATA, taken);
    if (result != CUDA_SUCCESS)
        return result;
    result = spill(pointer, device, bytes, taken);
    if (result == CUDA_SUCCESS)
        return memory_book(*pointer, device, context, LAMINA_DATA, taken, BLOCK_SPILLED);
    give_back(device, LAMINA_DATA, taken);
    return result;
}

/* Managed memory cannot be freed in a stream's order, so what stands in its place waits for the stream. */
static CUresult free_async(CUdeviceptr pointer, CUstream stream, CUresult (*wait)(CUstream),
                           CUresult (*free)(CUdeviceptr, CUstream), __typeof__(cuStreamGetCaptureInfo_v2) *capture_info)
{
    struct block block;
    if (graphs_know(pointer)) {
        CUgraph graph = graph_captured(capture_info, stream);
        CUresult result = free(pointer, stream);
        if (graph != NULL && result == CUDA_SUCCESS)
            graphs_frees(graph, pointer);
        return result;
    }
    bool booked = blocks_take(BLOCK_POINTER, pointer, &block);
    if (!booked || (block.flags & BLOCK_SPILLED) == 0)
        return freed(booked, &block, free(pointer, stream));
    CUresult result = wait(stream);
    return freed(true, &block, result == CUDA_SUCCESS ? REAL(cuMemFree_v2)(pointer) : result);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    struct block block;
    bool booked = blocks_take(BLOCK_POINTER, pointer, &block);
    CUresult result = freed(booked, &block, REAL(cuMemFree_v2)(pointer));
    if (booked && block.kind == LAMINA_POOL)
        pools_refresh(); /* the driver has waited for the GPU */
    return result;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    return free_async(pointer, stream, REAL(cuStreamSynchronize), REAL(cuMemFreeAsync),
                      REAL(cuStreamGetCaptureInfo_v2));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
    return free_async(pointer, stream, REAL(cuStreamSynchronize_ptsz), REAL(cuMemFreeAsync_ptsz),
                      REAL(cuStreamGetCaptureInfo_v2_ptsz));
}
