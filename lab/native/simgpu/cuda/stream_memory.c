/* Stream-ordered memory: allocations from pools, in the order of a stream. */
#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/pool.h"

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
    CUresult result = pool_allocate(ctx->dev->current_pool, ctx, size, out);
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
    CUresult result = pool_exists(pool) ? pool_allocate(pool, ctx, size, out) : CUDA_ERROR_INVALID_VALUE;
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
