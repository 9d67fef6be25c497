/* Every launch passes the gate. Launches of graphs are in view/graph_launch.c. */
#include "cuda/hooks.h"

#include "compute/launch_gate.h"

#include <stddef.h>

#define GRID unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz
#define GRID_ARGUMENTS gx, gy, gz, bx, by, bz

/* A launch that passes is a jump to the driver with the arguments in place. The rest is a separate function, so that it
 * does not cost registers here. */
#define GATED(name, stream, parameters, arguments)                                                                     \
    static __attribute__((noinline)) CUresult name##_enter parameters                                                  \
    {                                                                                                                  \
        CUstream through = (stream);                                                                                   \
        gate_enter(through);                                                                                           \
        CUresult result = REAL(name) arguments;                                                                        \
        gate_leave(through);                                                                                           \
        return result;                                                                                                 \
    }                                                                                                                  \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        if (__builtin_expect(gate_passes(stream), 1))                                                                  \
            return REAL(name) arguments;                                                                               \
        return name##_enter arguments;                                                                                 \
    }

/* The stream that NULL stands for in calls with per-thread default streams. */
static inline CUstream per_thread_default(CUstream stream)
{
    return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

static inline CUstream stream_of(const CUlaunchConfig *config)
{
    return config == NULL ? NULL : config->hStream;
}

GATED(cuLaunchKernel, stream, (CUfunction f, GRID, unsigned int shared, CUstream stream, void **params, void **extra),
      (f, GRID_ARGUMENTS, shared, stream, params, extra))
GATED(cuLaunchKernel_ptsz, per_thread_default(stream),
      (CUfunction f, GRID, unsigned int shared, CUstream stream, void **params, void **extra),
      (f, GRID_ARGUMENTS, shared, stream, params, extra))
GATED(cuLaunchCooperativeKernel, stream, (CUfunction f, GRID, unsigned int shared, CUstream stream, void **params),
      (f, GRID_ARGUMENTS, shared, stream, params))
GATED(cuLaunchCooperativeKernel_ptsz, per_thread_default(stream),
      (CUfunction f, GRID, unsigned int shared, CUstream stream, void **params),
      (f, GRID_ARGUMENTS, shared, stream, params))
GATED(cuLaunchKernelEx, stream_of(config), (const CUlaunchConfig *config, CUfunction f, void **params, void **extra),
      (config, f, params, extra))
GATED(cuLaunchKernelEx_ptsz, per_thread_default(stream_of(config)),
      (const CUlaunchConfig *config, CUfunction f, void **params, void **extra), (config, f, params, extra))
GATED(cuLaunch, NULL, (CUfunction f), (f))
GATED(cuLaunchGrid, NULL, (CUfunction f, int width, int height), (f, width, height))
GATED(cuLaunchGridAsync, stream, (CUfunction f, int width, int height, CUstream stream), (f, width, height, stream))

/* Each stream is on another GPU, and the gate works for the current context. */
static void for_each_stream(CUDA_LAUNCH_PARAMS *list, unsigned int count, void (*gate)(CUstream))
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
    for_each_stream(list, count, gate_enter);
    CUresult result = REAL(cuLaunchCooperativeKernelMultiDevice)(list, count, flags);
    for_each_stream(list, count, gate_leave);
    return result;
}
