/* What the benchmark's programs share: the driver as a program finds it with dlopen, and clocks. */
#ifndef LAMINA_BENCH_H
#define LAMINA_BENCH_H

#include "cuda_prototypes.h"
#include "nvml_prototypes.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLS(X)                                                                                                       \
    X(cuInit)                                                                                                          \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuCtxSetCurrent)                                                                                                 \
    X(cuCtxGetCurrent)                                                                                                 \
    X(cuCtxSynchronize)                                                                                                \
    X(cuDeviceGetAttribute)                                                                                            \
    X(cuMemGetInfo_v2)                                                                                                 \
    X(cuMemAlloc_v2)                                                                                                   \
    X(cuMemFree_v2)                                                                                                    \
    X(cuMemAllocManaged)                                                                                               \
    X(cuMemAllocAsync)                                                                                                 \
    X(cuMemFreeAsync)                                                                                                  \
    X(cuMemAllocFromPoolAsync)                                                                                         \
    X(cuMemPoolCreate)                                                                                                 \
    X(cuMemCreate)                                                                                                     \
    X(cuMemRelease)                                                                                                    \
    X(cuMemcpyHtoDAsync_v2)                                                                                            \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleGetFunction)                                                                                             \
    X(cuLaunchKernel)                                                                                                  \
    X(cuGetProcAddress_v2)

#define FIELD(name) __typeof__(name) *name;
extern struct driver { CALLS(FIELD) } cuda;
#undef FIELD

/* Finds the driver's functions; ends the program when one is missing. */
void bench_find(void);
/* As bench_find, then a context on device 0, which becomes current. */
CUcontext bench_begin(void);
/* Ends the program with a message when a call failed. */
void bench_failed(CUresult result, const char *call);

static inline void need(CUresult result, const char *call)
{
    if (__builtin_expect(result != CUDA_SUCCESS, 0))
        bench_failed(result, call);
}

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Waits for a moment of CLOCK_MONOTONIC. */
static inline void wait_until(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

#endif
