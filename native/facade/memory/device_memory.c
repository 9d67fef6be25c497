/* Device memory, managed memory and pitched memory, and freeing of everything that has a device pointer. */
#include "cuda/capture_mode.h"
#include "cuda/context_table.h"
#include "cuda/hooks.h"
#include "memory/blocks.h"
#include "memory/graph_records.h"
#include "memory/lending.h"
#include "memory/ordered_frees.h"
#include "memory/pools.h"
#include "memory/release.h"
#include "memory/reservation.h"
#include "memory/reserve.h"
#include "memory/spill.h"
#include "shared/live_limits.h"
#include "shared/usage_slots.h"

#include <stdint.h>

/* A pitch is a multiple of at least this; the actual one is known only afterwards. */
enum { PITCH_ALIGNMENT = 512 };

/* Small requests share blocks and are not worth moving. Only where memory is lent, all that is borrowed has to move. */
static bool takes_blocks(const struct reservation *reservation, uint64_t bytes, int device)
{
    return !shares_a_block(bytes) ||
           (reservation->request.reserved && may_borrow(&facade_open()->account, (uint32_t)device));
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    uint64_t since = 0;
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || pointer == NULL || bytes == 0)
        return REAL(cuMemAlloc_v2)(pointer, bytes); /* for the driver's own answer */
    struct reservation reservation;
    CUresult result = reservation_begin(&reservation, context, device, LAMINA_DATA, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    bool full = takes_blocks(&reservation, bytes, device) && spill_needed(device);
    do
        result = full ? CUDA_ERROR_OUT_OF_MEMORY : REAL(cuMemAlloc_v2)(pointer, bytes);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && !full && lending_wait(device, &since));
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return reservation_spill(&reservation, pointer, bytes);
    return result == CUDA_SUCCESS ? reservation_commit(&reservation, *pointer)
                                  : reservation_cancel(&reservation, result);
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || pointer == NULL || bytes == 0)
        return REAL(cuMemAllocManaged)(pointer, bytes, flags);
    struct reservation reservation;
    CUresult result = reservation_begin(&reservation, context, device, LAMINA_MANAGED, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMemAllocManaged)(pointer, bytes, flags);
    return result == CUDA_SUCCESS ? reservation_commit(&reservation, *pointer)
                                  : reservation_cancel(&reservation, result);
}

static uint64_t pitched_bytes(uint64_t width, uint64_t height)
{
    return multiply_saturating(multiply_saturating((width - 1) / PITCH_ALIGNMENT + 1, PITCH_ALIGNMENT), height);
}

/* The driver has chosen the pitch, so what it really took is now known. */
static CUresult commit_pitched(struct reservation *reservation, CUdeviceptr pointer, uint64_t actual)
{
    CUresult result = reservation_adjust(reservation, actual);
    if (result == CUDA_SUCCESS)
        return reservation_commit(reservation, pointer);
    REAL(cuMemFree_v2)(pointer);
    return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    uint64_t since = 0;
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || pointer == NULL || pitch == NULL || width == 0 || height == 0)
        return REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    const uint64_t bytes = pitched_bytes(width, height);
    struct reservation reservation;
    CUresult result = reservation_begin(&reservation, context, device, LAMINA_DATA, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    const bool full = spill_needed(device);
    do
        result = full ? CUDA_ERROR_OUT_OF_MEMORY : REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && !full && lending_wait(device, &since));
    if (result == CUDA_SUCCESS)
        return commit_pitched(&reservation, *pointer, multiply_saturating(*pitch, height));
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return reservation_cancel(&reservation, result);
    result = reservation_spill(&reservation, pointer, bytes);
    if (result == CUDA_SUCCESS)
        *pitch = pitched_bytes(width, 1);
    return result;
}

/* The entry was removed before the driver's call, since the driver may give the address to another thread at once. It
 * is put back if the call failed. True when it was not, and the block is not one of a pool, which counts as a whole. */
static bool is_freed(const struct block *block, CUresult result)
{
    struct block replaced;
    if (result != CUDA_SUCCESS) {
        blocks_put(block, &replaced);
        return false;
    }
    if (block->kind != LAMINA_POOL)
        return true;
    release_shared(block);
    pools_note_free(block);
    return false;
}

/* The driver has waited for the GPU. */
static CUresult finish_free(const struct block *block, CUresult result)
{
    if (is_freed(block, result))
        release_block(block);
    return result;
}

/* Managed memory cannot be freed in the order of a stream, so what replaces device memory waits for the stream. */
static CUresult wait_and_free(CUdeviceptr pointer, CUstream stream)
{
    CUstreamCaptureMode mode = neutral_begin();
    CUresult result = REAL(cuStreamSynchronize)(stream);
    if (result == CUDA_SUCCESS)
        result = REAL(cuMemFree_v2)(pointer);
    neutral_end(mode);
    return result;
}

/* `through`: the stream by a handle that means the same to every form of a call. */
static CUresult free_async(CUdeviceptr pointer, CUstream stream, CUstream through,
                           CUresult (*free)(CUdeviceptr, CUstream), __typeof__(cuStreamGetCaptureInfo_v2) *capture_info)
{
    struct block block;
    if (graph_records_have_pointer(pointer)) {
        CUgraph graph = captured_graph(capture_info, stream);
        CUresult result = free(pointer, stream);
        if (graph != NULL && result == CUDA_SUCCESS)
            graph_records_note_free(graph, pointer);
        return result;
    }
    bool booked = blocks_take(BLOCK_POINTER, pointer, &block);
    if (!booked)
        return free(pointer, stream);
    if (block.flags & BLOCK_SPILLED)
        return finish_free(&block, wait_and_free(pointer, through));
    CUresult result = free(pointer, stream);
    if (is_freed(&block, result))
        ordered_frees_add(&block, through);
    return result;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    struct block block;
    bool booked = blocks_take(BLOCK_POINTER, pointer, &block);
    CUresult result = REAL(cuMemFree_v2)(pointer);
    if (booked)
        finish_free(&block, result);
    if (booked && block.kind == LAMINA_POOL)
        pools_refresh(); /* the driver has waited for the GPU */
    return result;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    return free_async(pointer, stream, stream, REAL(cuMemFreeAsync), REAL(cuStreamGetCaptureInfo_v2));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
    return free_async(pointer, stream, stream == NULL ? CU_STREAM_PER_THREAD : stream, REAL(cuMemFreeAsync_ptsz),
                      REAL(cuStreamGetCaptureInfo_v2_ptsz));
}
