/* Every way to make the GPU work goes through the gate. Graphs are in graph_memory.c. */
#include "launches.h"

#include "gate.h"

#include <stddef.h>

/* A launch that passes is a jump to the driver with the arguments where they are; the rest is a function of its own. */
#define GATED(name, stream, parameters, arguments)                                                                    \
    static __attribute__((noinline)) CUresult name##_asks parameters                                                  \
    {                                                                                                                 \
        CUstream through = (stream);                                                                                  \
        gate_enter(through);                                                                                          \
        CUresult result = REAL(name) arguments;                                                                       \
        gate_leave(through);                                                                                          \
        return result;                                                                                                \
    }                                                                                                                 \
    CUresult name parameters                                                                                          \
    {                                                                                                                 \
        if (__builtin_expect(gate_passes(stream), 1))                                                                 \
            return REAL(name) arguments;                                                                              \
        return name##_asks arguments;                                                                                 \
    }

/* What no stream means in calls with per-thread default streams. */
static inline CUstream own(CUstream stream)
{
    return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

static inline CUstream of(const CUlaunchConfig *config)
{
    return config == NULL ? NULL : config->hStream;
}

GATED(cuLaunchKernel, stream,
      (CUfunction f, GRID, unsigned int shared, CUstream stream, void **params, void **extra),
      (f, GRID_ARGUMENTS, shared, stream, params, extra))
GATED(cuLaunchKernel_ptsz, own(stream),
      (CUfunction f, GRID, unsigned int shared, CUstream stream, void **params, void **extra),
      (f, GRID_ARGUMENTS, shared, stream, params, extra))
GATED(cuLaunchCooperativeKernel, stream, (CUfunction f, GRID, unsigned int shared, CUstream stream, void **params),
      (f, GRID_ARGUMENTS, shared, stream, params))
GATED(cuLaunchCooperativeKernel_ptsz, own(stream),
      (CUfunction f, GRID, unsigned int shared, CUstream stream, void **params),
      (f, GRID_ARGUMENTS, shared, stream, params))
GATED(cuLaunchKernelEx, of(config), (const CUlaunchConfig *config, CUfunction f, void **params, void **extra),
      (config, f, params, extra))
GATED(cuLaunchKernelEx_ptsz, own(of(config)),
      (const CUlaunchConfig *config, CUfunction f, void **params, void **extra), (config, f, params, extra))
GATED(cuLaunch, NULL, (CUfunction f), (f))
GATED(cuLaunchGrid, NULL, (CUfunction f, int width, int height), (f, width, height))
GATED(cuLaunchGridAsync, stream, (CUfunction f, int width, int height, CUstream stream), (f, width, height, stream))

/* Each stream is on another GPU; a gate is that of the context which is current. */
static void at_each(CUDA_LAUNCH_PARAMS *list, unsigned int count, void (*gate)(CUstream))
{
    for (unsigned int i = 0; list != NULL && i < count; i++) {
        CUcontext context;
        if (REAL(cuStreamGetCtx)(list[i].hStream, &context) != CUDA_SUCCESS ||
            REAL(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS)
            continue;
        gate(list[i].hStream);
        REAL(cuCtxPopCurrent_v2)(&context);
    }
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags)
{
    at_each(list, count, gate_enter);
    CUresult result = REAL(cuLaunchCooperativeKernelMultiDevice)(list, count, flags);
    at_each(list, count, gate_leave);
    return result;
}
