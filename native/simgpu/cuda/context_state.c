/* What a thread may ask of its context, and set. */
#include "callback.h"
#include "memory.h"

void context_finish(CUcontext ctx) {
    timeline_wait(&driver.m, ctx->dev->gpu, driver.slot, timeline_end(&driver.m, ctx->dev->gpu, driver.slot));
    callback_wait_all();
}

SIM_API CUresult cuCtxSynchronize(void) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    result = stream_uncaptured(ctx);
    if (result == CUDA_SUCCESS) {
        context_finish(ctx);
        pool_trim_idle(ctx->dev);
    }
    return result;
}

SIM_API CUresult cuCtxSynchronize_v2(CUcontext ctx) {
    if (ctx == NULL) return cuCtxSynchronize();
    if (!context_known(ctx)) return CUDA_ERROR_INVALID_CONTEXT;
    context_finish(ctx);
    pool_trim_idle(ctx->dev);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetDevice(CUdevice *out) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result == CUDA_SUCCESS) *out = ctx->ordinal;
    return result;
}

SIM_API CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext ctx) {
    if (ctx == NULL) return cuCtxGetDevice(out);
    if (!context_known(ctx)) return CUDA_ERROR_INVALID_CONTEXT;
    *out = ctx->ordinal;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetFlags(unsigned int *flags) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result == CUDA_SUCCESS) *flags = ctx->flags;
    return result;
}

SIM_API CUresult cuCtxSetFlags(unsigned int flags) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result == CUDA_SUCCESS) ctx->flags = flags;
    return result;
}

SIM_API CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id) {
    CUresult result = ctx != NULL ? driver_ready() : context_needed(&ctx);
    if (result == CUDA_SUCCESS) *id = ctx->id;
    return result;
}

SIM_API CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) {
    CUresult result = ctx != NULL ? driver_ready() : context_needed(&ctx);
    if (result == CUDA_SUCCESS) *version = 3020;
    return result;
}

SIM_API CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (limit < 0 || limit > 6) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    static const size_t first[] = {1024, 1 << 20, 8 << 20};
    const simgpu_gpu *gpu = device_record(ctx->dev);
    uint64_t threads = limit == 0 ? (uint64_t)gpu->sm_count * gpu->threads_per_sm : 1;
    uint32_t mib[2] = {0, 0}; /* before and after */
    const size_t values[2] = {ctx->limits[limit], value};
    for (int i = 0; i < 2 && limit <= 2; i++)
        if (values[i] > first[limit]) mib[i] = memory_blocks_mib((values[i] - first[limit]) * threads);
    driver_lock();
    if (mib[1] > mib[0] && !charge_take(ctx->dev, mib[1] - mib[0])) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (mib[1] < mib[0]) charge_give(ctx->dev, mib[0] - mib[1]);
    if (result == CUDA_SUCCESS) {
        ctx->limits_mib += mib[1] - mib[0];
        ctx->limits[limit] = value;
    }
    driver_unlock();
    return result;
}

SIM_API CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (limit < 0 || limit > 6) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = ctx->limits[limit];
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetCacheConfig(CUfunc_cache *config) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result == CUDA_SUCCESS) *config = 0;
    return result;
}

SIM_API CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    CUcontext ctx;
    (void)config;
    return context_needed(&ctx);
}

SIM_API CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result == CUDA_SUCCESS) *config = 0;
    return result;
}

SIM_API CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
    CUcontext ctx;
    (void)config;
    return context_needed(&ctx);
}

SIM_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (least != NULL) *least = 0;
    if (greatest != NULL) *greatest = -5;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxResetPersistingL2Cache(void) {
    CUcontext ctx;
    return context_needed(&ctx);
}

SIM_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return context_known(peer) && peer->dev != ctx->dev ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_API CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    return context_known(peer) && peer->dev != ctx->dev ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
