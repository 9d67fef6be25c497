/* Waiting for work is when pools let go of memory: the account is brought up to date then. And what the thread has
 * launched so far is measured by itself, so that the time until its next launch is not taken for work. */
#include "gate.h"
#include "hooks.h"
#include "pools.h"

static CUresult waited(CUresult result)
{
    pools_refresh_if_freed();
    gate_waited();
    return result;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    gate_pause();
    return waited(REAL(cuStreamSynchronize)(stream));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    gate_pause();
    return waited(REAL(cuStreamSynchronize_ptsz)(stream));
}

CUresult cuEventSynchronize(CUevent event)
{
    gate_pause();
    return waited(REAL(cuEventSynchronize)(event));
}

CUresult cuCtxSynchronize(void)
{
    gate_pause();
    return waited(REAL(cuCtxSynchronize)());
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    gate_pause();
    return waited(REAL(cuCtxSynchronize_v2)(context));
}
