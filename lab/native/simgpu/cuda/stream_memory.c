/* Stream-ordered memory: allocations from pools, in the order of a stream. */
#include "cuda/capture.h"
#include "cuda/charge.h"
#include "cuda/driver.h"
#include "cuda/memory.h"
#include "cuda/pool.h"
#include "cuda/reclaim.h"

#include <stdlib.h>

#define STEP_MIB 32
#define PIECE_BYTES 512

static bool grow_pool(CUmemoryPool pool, uint32_t need)
{
    while (pool->reserved_mib < need) {
        uint32_t more = need - pool->reserved_mib, step = (more + STEP_MIB - 1) / STEP_MIB * STEP_MIB;
        if (need > pool->limit_mib)
            return false;
        if (pool->reserved_mib + step <= pool->limit_mib && charge_take(pool->dev, step))
            more = step;
        else if (!reclaim_take(pool->dev, more))
            return false; /* what this tries may shrink this same pool */
        pool->reserved_mib += more;
    }
    if (pool->reserved_mib > pool->reserved_high_mib)
        pool->reserved_high_mib = pool->reserved_mib;
    return true;
}

static size_t round_up(size_t size)
{
    return (size + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
}

static void free_to_pool(struct allocation *a)
{
    CUmemoryPool pool = a->pool;
    pool->used -= round_up(a->size);
    if (pool->destroyed && pool->used == 0) {
        pool_shrink(pool, 0);
        free(pool);
    }
}

static CUresult allocate_from(CUmemoryPool pool, CUcontext ctx, size_t size, CUdeviceptr *out)
{
    struct allocation *a;
    if (size == 0 || out == NULL || pool == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > MEMORY_MAX_BYTES || !grow_pool(pool, charge_round_up_mib(pool->used + round_up(size))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(memory_allocate(ctx, KIND_POOL, size, &a));
    a->pool = pool;
    a->release = free_to_pool;
    pool->used += round_up(size);
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    *out = a->start;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream handle)
{
    CUcontext ctx;
    CUstream stream;
    TRY(context_require(&ctx));
    TRY(stream_resolve(handle, &stream));
    if (stream->capture != NULL)
        return capture_add_allocation(stream, size, out);
    driver_lock();
    pool_default(ctx->dev);
    CUresult result = allocate_from(ctx->dev->current_pool, ctx, size, out);
    driver_unlock();
    return result;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream handle)
{
    CUcontext ctx;
    CUstream stream;
    TRY(context_require(&ctx));
    TRY(stream_resolve(handle, &stream));
    driver_lock();
    CUresult result = pool_exists(pool) ? allocate_from(pool, ctx, size, out) : CUDA_ERROR_INVALID_VALUE;
    driver_unlock();
    return result;
}

/* What cuMemFreeAsync may free: everything but memory with calls of its own. */
static bool is_freed_in_order(const struct allocation *a)
{
    return a->kind == KIND_POOL || a->kind == KIND_PLAIN || a->kind == KIND_GRAPH;
}

CUresult cuMemFreeAsync(CUdeviceptr at, CUstream handle)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    if (at == 0)
        return CUDA_SUCCESS;
    if (stream->capture != NULL)
        return capture_add_free(stream, at);
    driver_lock();
    struct allocation *a = memory_find(at);
    bool valid = a != NULL && a->start == at && is_freed_in_order(a);
    if (valid)
        memory_free(a);
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
