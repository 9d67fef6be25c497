/* Waiting for work is when pools let go of memory: the account is brought up to date then. */
#include "hooks.h"
#include "pools.h"

static CUresult waited(CUresult result)
{
    pools_refresh_if_freed();
    return result;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    return waited(REAL(cuStreamSynchronize)(stream));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    return waited(REAL(cuStreamSynchronize_ptsz)(stream));
}

CUresult cuEventSynchronize(CUevent event)
{
    return waited(REAL(cuEventSynchronize)(event));
}

CUresult cuCtxSynchronize(void)
{
    return waited(REAL(cuCtxSynchronize)());
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    return waited(REAL(cuCtxSynchronize_v2)(context));
}
