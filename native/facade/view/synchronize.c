/* Waiting for work. Pools give memory back then, so the account is updated. And what the thread has launched so far is
 * measured by itself, so that the time until its next launch is not mistaken for work. */
#include "compute/launch_gate.h"
#include "cuda/hooks.h"
#include "memory/ordered_frees.h"
#include "memory/pools.h"

static CUresult after_wait(CUresult result)
{
    ordered_frees_collect();
    pools_refresh_if_shrunk();
    gate_collect();
    return result;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    gate_close_batches();
    return after_wait(REAL(cuStreamSynchronize)(stream));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    gate_close_batches();
    return after_wait(REAL(cuStreamSynchronize_ptsz)(stream));
}

CUresult cuEventSynchronize(CUevent event)
{
    gate_close_batches();
    return after_wait(REAL(cuEventSynchronize)(event));
}

CUresult cuCtxSynchronize(void)
{
    gate_close_batches();
    return after_wait(REAL(cuCtxSynchronize)());
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    gate_close_batches();
    return after_wait(REAL(cuCtxSynchronize_v2)(context));
}
