/* Which context is current: each thread has a stack of them. */
#include "cuda/context.h"

#include "core/timeline.h"
#include "cuda/driver.h"
#include "cuda/mps.h"

#include <stdatomic.h>

#define STACK_DEPTH 64

static __thread struct {
    uint32_t depth;
    CUcontext items[STACK_DEPTH];
} stack;

/* A forked child has one thread, the one that called fork. */
void context_after_fork(void)
{
    stack.depth = 0;
}

CUcontext context_current(void)
{
    return stack.depth > 0 ? stack.items[stack.depth - 1] : NULL;
}

/* It stays broken until it is destroyed. */
CUresult context_check_sound(CUcontext ctx)
{
    uint64_t fault = atomic_load(&ctx->fault);
    bool broken = fault != 0 && timeline_done(&driver.m, ctx->dev->gpu, driver.slot, machine_now()) >= fault;
    return broken ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

CUresult context_require(CUcontext *ctx)
{
    TRY(driver_check_ready());
    TRY(mps_check());
    *ctx = context_current();
    if (*ctx == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if ((*ctx)->magic != CONTEXT_MAGIC)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return context_check_sound(*ctx);
}

bool context_exists(CUcontext ctx)
{
    for (CUcontext c = driver.contexts; c != NULL; c = c->next)
        if (c == ctx)
            return true;
    return false;
}

CUresult context_push(CUcontext ctx)
{
    if (stack.depth == STACK_DEPTH)
        return CUDA_ERROR_INVALID_VALUE;
    stack.items[stack.depth++] = ctx;
    return CUDA_SUCCESS;
}

void context_pop(CUcontext ctx)
{
    if (context_current() == ctx && stack.depth > 0)
        stack.depth--;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    TRY(driver_check_ready());
    return ctx == NULL ? CUDA_ERROR_INVALID_CONTEXT : context_push(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    TRY(driver_check_ready());
    CUcontext ctx = context_current();
    if (ctx == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_pop(ctx);
    if (out != NULL)
        *out = ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    TRY(driver_check_ready());
    context_pop(context_current());
    return ctx != NULL ? context_push(ctx) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    TRY(driver_check_ready());
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = context_current();
    return CUDA_SUCCESS;
}
