/* Limits of a context. The first three take device memory beyond what they are when the context is created. Those about
 * work shared with graphics (CIG) are 0 here; the first two of them can only be read. */
#include "charge.h"
#include "context.h"
#include "driver.h"
#include "memory.h"

enum { STACK_SIZE = 0, HEAP_SIZE = 2, SETTABLE = 7, CIG_ENABLED = 8, LIMITS = 10, CIG_SINCE = 12050 };

/* What a limit of this value takes. A stack is one thread's, of all that the GPU can run at once. */
static uint32_t memory_of_limit(const device *dev, CUlimit limit, size_t value)
{
    static const size_t initial[] = {1024, 1 << 20, 8 << 20};
    const simgpu_gpu *gpu = device_record(dev);
    uint64_t threads = limit == STACK_SIZE ? (uint64_t)gpu->sm_count * gpu->threads_per_sm : 1;
    if (limit > HEAP_SIZE || value <= initial[limit])
        return 0;
    return memory_round_up_mib((value - initial[limit]) * threads);
}

static CUresult find_limit(CUlimit limit, CUcontext *ctx)
{
    TRY(context_require(ctx));
    bool known = driver.m.head->cuda_version >= CIG_SINCE ? limit < LIMITS : limit < SETTABLE;
    return limit >= 0 && known ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUcontext ctx;
    TRY(find_limit(limit, &ctx));
    if (limit >= SETTABLE && limit <= CIG_ENABLED)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    uint32_t before = memory_of_limit(ctx->dev, limit, ctx->limits[limit]);
    uint32_t after = memory_of_limit(ctx->dev, limit, value);
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
