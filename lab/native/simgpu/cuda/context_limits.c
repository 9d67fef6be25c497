/* Limits of a context. The first three take device memory beyond what they are when the context is created. Those about
 * work shared with graphics (CIG) can only be read, but for the last. Defaults are those of an H100 with driver 580. */
#include "cuda/charge.h"
#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/memory.h"

enum {
    STACK_SIZE = 0,
    HEAP_SIZE = 2,
    SYNC_DEPTH = 3,
    SETTABLE = 7,
    CIG_ENABLED = 8,
    LIMITS = 10,
    CIG_SINCE = 12050,
    PRINTF_BYTES_PER_SM = 1 << 16,
    RESERVED_SHARED = 1024
};

void context_limits_begin(CUcontext ctx)
{
    const struct simgpu_gpu *gpu = device_record(ctx->dev);
    const bool hopper = gpu->compute_major >= 9;
    const size_t initial[] = {1024,
                              (size_t)gpu->sm_count * PRINTF_BYTES_PER_SM,
                              8 << 20,
                              2,
                              2048,
                              64,
                              hopper ? gpu->l2_bytes / 16 * 3 : 0,
                              gpu->shared_per_sm - RESERVED_SHARED};
    for (unsigned i = 0; i < sizeof initial / sizeof initial[0]; i++)
        ctx->limits[i] = ctx->initial_limits[i] = initial[i];
}

/* What a limit of this value takes. A stack is one thread's, of all that the GPU can run at once. */
static uint32_t memory_of_limit(CUcontext ctx, CUlimit limit, size_t value)
{
    const struct simgpu_gpu *gpu = device_record(ctx->dev);
    uint64_t threads = limit == STACK_SIZE ? (uint64_t)gpu->sm_count * gpu->threads_per_sm : 1;
    if (limit > HEAP_SIZE || value <= ctx->initial_limits[limit])
        return 0;
    return memory_round_up_mib((value - ctx->initial_limits[limit]) * threads);
}

static CUresult find_limit(CUlimit limit, CUcontext *ctx)
{
    TRY(context_require(ctx));
    bool known = driver.m.head->cuda_version >= CIG_SINCE ? limit < LIMITS : limit < SETTABLE;
    if (limit < 0 || !known)
        return CUDA_ERROR_INVALID_VALUE;
    bool unsupported = limit == SYNC_DEPTH && device_record((*ctx)->dev)->compute_major >= 9;
    return unsupported ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUcontext ctx;
    TRY(find_limit(limit, &ctx));
    if (limit >= SETTABLE && limit <= CIG_ENABLED)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    uint32_t before = memory_of_limit(ctx, limit, ctx->limits[limit]);
    uint32_t after = memory_of_limit(ctx, limit, value);
    CUresult result = CUDA_SUCCESS;
    driver_lock();
    if (after > before && !charge_take(ctx->dev, after - before))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (after < before)
        charge_give(ctx->dev, before - after);
    if (result == CUDA_SUCCESS) {
        ctx->limits_mib += after - before;
        ctx->limits[limit] = value;
    }
    driver_unlock();
    return result;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    CUcontext ctx;
    TRY(find_limit(limit, &ctx));
    *value = ctx->limits[limit];
    return CUDA_SUCCESS;
}
