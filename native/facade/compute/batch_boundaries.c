/* Calls that end a thread's batches, because it may not launch for a while or may launch elsewhere. The batches are
 * measured up to here, so that the time in between is not mistaken for work. */
#include "compute/launch_gate.h"
#include "cuda/hooks.h"

#include <stddef.h>

/* The calling thread's context changes, unless it is the current one. */
static void switch_context(CUcontext next)
{
    CUcontext current = NULL;
    if (REAL(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current != next)
        gate_switch_context();
}

/* A call that ends batches first. */
#define AFTER(ending, name, parameters, arguments)                                                                     \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        ending;                                                                                                        \
        return REAL(name) arguments;                                                                                   \
    }

AFTER(switch_context(context), cuCtxSetCurrent, (CUcontext context), (context))
AFTER(switch_context(context), cuCtxPushCurrent, (CUcontext context), (context))
AFTER(switch_context(context), cuCtxPushCurrent_v2, (CUcontext context), (context))
AFTER(gate_switch_context(), cuCtxPopCurrent, (CUcontext * context), (context))
AFTER(gate_switch_context(), cuCtxPopCurrent_v2, (CUcontext * context), (context))
AFTER(gate_end_stream(stream), cuStreamDestroy, (CUstream stream), (stream))
AFTER(gate_end_stream(stream), cuStreamDestroy_v2, (CUstream stream), (stream))
AFTER(gate_close_batches(), cuStreamBeginCapture, (CUstream stream), (stream))
AFTER(gate_close_batches(), cuStreamBeginCapture_ptsz, (CUstream stream), (stream))
AFTER(gate_close_batches(), cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
AFTER(gate_close_batches(), cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
AFTER(gate_close_batches(), cuEventRecord, (CUevent event, CUstream stream), (event, stream))
AFTER(gate_close_batches(), cuEventRecord_ptsz, (CUevent event, CUstream stream), (event, stream))
AFTER(gate_close_batches(), cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags),
      (event, stream, flags))
AFTER(gate_close_batches(), cuEventRecordWithFlags_ptsz, (CUevent event, CUstream stream, unsigned int flags),
      (event, stream, flags))
AFTER(gate_close_batches(), cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
      (to, from, bytes, stream))
AFTER(gate_close_batches(), cuMemcpyDtoHAsync_v2_ptsz, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
      (to, from, bytes, stream))

#define CLOSE_AND_COLLECT(name, parameters, arguments)                                                                 \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        gate_close_batches();                                                                                          \
        CUresult result = REAL(name) arguments;                                                                        \
        if (result != CUDA_ERROR_NOT_READY)                                                                            \
            gate_collect();                                                                                            \
        return result;                                                                                                 \
    }

CLOSE_AND_COLLECT(cuEventQuery, (CUevent event), (event))
CLOSE_AND_COLLECT(cuStreamQuery, (CUstream stream), (stream))
CLOSE_AND_COLLECT(cuStreamQuery_ptsz, (CUstream stream), (stream))
CLOSE_AND_COLLECT(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))
CLOSE_AND_COLLECT(cuMemcpyDtoH_v2_ptds, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))
