/* Calls after which a thread may not launch for long, or launches elsewhere. What it has launched is measured up to
 * here, so that the time in between is not taken for work. */
#include "gate.h"
#include "launches.h"

#include <stddef.h>

/* The calling thread's context changes, unless it is the same one again. */
static void switches(CUcontext next)
{
    CUcontext current = NULL;
    if (REAL(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current != next)
        gate_turns();
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    switches(context);
    return REAL(cuCtxSetCurrent)(context);
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    switches(context);
    return REAL(cuCtxPushCurrent)(context);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    switches(context);
    return REAL(cuCtxPushCurrent_v2)(context);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    gate_turns();
    return REAL(cuCtxPopCurrent)(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    gate_turns();
    return REAL(cuCtxPopCurrent_v2)(context);
}

CUresult cuStreamDestroy(CUstream stream)
{
    gate_stream_ends(stream);
    return REAL(cuStreamDestroy)(stream);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    gate_stream_ends(stream);
    return REAL(cuStreamDestroy_v2)(stream);
}

#define PAUSE_BEFORE(name, parameters, arguments)                                                                     \
    CUresult name parameters                                                                                          \
    {                                                                                                                 \
        gate_pause();                                                                                                 \
        return REAL(name) arguments;                                                                                  \
    }

PAUSE_BEFORE(cuStreamBeginCapture, (CUstream stream), (stream))
PAUSE_BEFORE(cuStreamBeginCapture_ptsz, (CUstream stream), (stream))
PAUSE_BEFORE(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
PAUSE_BEFORE(cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
PAUSE_BEFORE(cuEventRecord, (CUevent event, CUstream stream), (event, stream))
PAUSE_BEFORE(cuEventRecord_ptsz, (CUevent event, CUstream stream), (event, stream))
PAUSE_BEFORE(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags), (event, stream, flags))
PAUSE_BEFORE(cuEventRecordWithFlags_ptsz, (CUevent event, CUstream stream, unsigned int flags), (event, stream, flags))
PAUSE_BEFORE(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream))
PAUSE_BEFORE(cuMemcpyDtoHAsync_v2_ptsz, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
             (to, from, bytes, stream))

#define WAIT_BETWEEN(name, parameters, arguments)                                                                     \
    CUresult name parameters                                                                                          \
    {                                                                                                                 \
        gate_pause();                                                                                                 \
        CUresult result = REAL(name) arguments;                                                                       \
        if (result != CUDA_ERROR_NOT_READY)                                                                           \
            gate_waited();                                                                                            \
        return result;                                                                                                \
    }

WAIT_BETWEEN(cuEventQuery, (CUevent event), (event))
WAIT_BETWEEN(cuStreamQuery, (CUstream stream), (stream))
WAIT_BETWEEN(cuStreamQuery_ptsz, (CUstream stream), (stream))
WAIT_BETWEEN(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))
WAIT_BETWEEN(cuMemcpyDtoH_v2_ptds, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))
