/* Stream-ordered memory: allocations from pools, in the order of a stream. */
#include "cuda/capture.h"
#include "cuda/charge.h"
#include "cuda/driver.h"
#include "cuda/memory.h"
#include "cuda/ordered_free.h"
#include "cuda/pool.h"
#include "cuda/reclaim.h"

#include <stdatomic.h>
#include <stdlib.h>

#define STEP_MIB 32

enum { WITH_NEW_DEPENDENCIES = 2 }; /* of what a pool may reuse */

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

static void free_to_pool(struct allocation *a)
{
    CUmemoryPool pool = a->pool;
    *(a->freed ? &pool->waiting : &pool->used) -= pool_piece(a->size);
    if (pool->destroyed && pool->used + pool->waiting == 0) {
        pool_shrink(pool, 0);
        free(pool);
    }
}

/* Memory that the program has freed is only taken where there is no other. */
static bool find_memory(CUmemoryPool pool, CUstream stream, size_t size)
{
    ordered_free_collect();
    uint32_t need = charge_round_up_mib(pool->used + pool->waiting + pool_piece(size));
    if (pool->waiting > 0 && need > pool->reserved_mib) {
        ordered_free_reuse(pool, stream, pool->reuse[WITH_NEW_DEPENDENCIES]);
        need = charge_round_up_mib(pool->used + pool->waiting + pool_piece(size));
    }
    return grow_pool(pool, need);
}

static CUresult allocate_from(CUmemoryPool pool, CUstream stream, size_t size, CUdeviceptr *out)
{
    struct allocation *a;
    if (size == 0 || out == NULL || pool == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > MEMORY_MAX_BYTES || !find_memory(pool, stream, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(memory_allocate(stream->ctx, KIND_POOL, size, &a));
    a->pool = pool;
    a->release = free_to_pool;
    pool->used += pool_piece(size);
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
    CUresult result = allocate_from(ctx->dev->current_pool, stream, size, out);
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
    CUresult result = pool_exists(pool) ? allocate_from(pool, stream, size, out) : CUDA_ERROR_INVALID_VALUE;
    driver_unlock();
    return result;
}

/* What cuMemFreeAsync may free: everything but memory with calls of its own. */
static bool is_freed_in_order(const struct allocation *a)
{
    return a->kind == KIND_POOL || a->kind == KIND_PLAIN || a->kind == KIND_GRAPH;
}

/* What a graph left may be freed at once: the next launch, which may need it, comes later in the order of the GPU. */
static void free_in_order(struct allocation *a, CUstream stream)
{
    uint64_t end = atomic_load(&stream->last);
    if (a->kind == KIND_POOL) {
        a->pool->used -= pool_piece(a->size);
        a->pool->waiting += pool_piece(a->size);
    }
    if (a->kind != KIND_GRAPH) {
        ordered_free(a, stream, memory_free);
        return;
    }
    if (a->dev->graph_end < end)
        a->dev->graph_end = end;
    memory_free(a);
}

CUresult cuMemFreeAsync(CUdeviceptr at, CUstream handle)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    if (at == 0)
        return CUDA_SUCCESS;
    driver_lock();
    struct allocation *a = memory_find(at);
    bool of_graphs = a == NULL || a->kind == KIND_GRAPH;
    if (stream->capture != NULL) {
        driver_unlock();
        return of_graphs ? capture_add_free(stream, at) : CUDA_ERROR_INVALID_VALUE;
    }
    bool valid = a != NULL && !a->freed && a->start == at && is_freed_in_order(a);
    if (valid)
        free_in_order(a, stream);
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
