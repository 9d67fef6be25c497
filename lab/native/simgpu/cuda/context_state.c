/* What a program may query and set of a context, and waiting for it. */
#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/pool.h"

/* The context of a call that may name one: NULL stands for the calling thread's. */
static CUresult find_context(CUcontext named, CUcontext *ctx)
{
    if (named == NULL)
        return context_require(ctx);
    *ctx = named;
    return context_exists(named) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult wait_and_trim(CUcontext ctx)
{
    stream_wait_all(ctx);
    pool_trim_idle(ctx->dev);
    return context_check_sound(ctx);
}

CUresult cuCtxSynchronize(void)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    TRY(capture_check_absent(ctx));
    return wait_and_trim(ctx);
}

CUresult cuCtxSynchronize_v2(CUcontext named)
{
    CUcontext ctx;
    if (named == NULL)
        return cuCtxSynchronize();
    TRY(find_context(named, &ctx));
    return wait_and_trim(ctx);
}

CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext named)
{
    CUcontext ctx;
    TRY(find_context(named, &ctx));
    *out = ctx->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *out)
{
    return cuCtxGetDevice_v2(out, NULL);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    *flags = ctx->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    ctx->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext named, unsigned long long *id)
{
    CUcontext ctx;
    TRY(driver_check_ready());
    TRY(find_context(named, &ctx));
    *id = ctx->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext named, unsigned int *version)
{
    CUcontext ctx;
    TRY(driver_check_ready());
    TRY(find_context(named, &ctx));
    *version = 3020;
    return CUDA_SUCCESS;
}

/* Caches and shared memory have one configuration, which no call changes. */
static CUresult get_only_configuration(int *config)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    *config = 0;
    return CUDA_SUCCESS;
}

static CUresult keep_only_configuration(void)
{
    CUcontext ctx;
    return context_require(&ctx);
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    return get_only_configuration(config);
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    (void)config;
    return keep_only_configuration();
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    return get_only_configuration(config);
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    (void)config;
    return keep_only_configuration();
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    return keep_only_configuration();
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = STREAM_PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

/* Contexts of different devices can access each other's memory, whether that was enabled or not. */
static CUresult check_peer(CUcontext peer, unsigned int flags)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return context_exists(peer) && peer->dev != ctx->dev ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    return check_peer(peer, flags);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    return check_peer(peer, 0);
}
