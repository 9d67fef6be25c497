/* The driver's functions as a test program reaches them: CALL(name)(arguments). How a name is found is decided when
 * the program starts, by the way that its first argument names. */
#ifndef FACADE_CALLS_H
#define FACADE_CALLS_H

#include "cuda_prototypes.h"

/* Each function with the CUDA version of its form, as cuGetProcAddress takes it. */
#define CALLS(X)                                                                                                       \
    X(cuModuleLoadData, 2000)                                                                                          \
    X(cuModuleGetFunction, 2000)                                                                                       \
    X(cuLaunchKernel, 4000)                                                                                            \
    X(cuStreamCreate, 2000)                                                                                            \
    X(cuStreamBeginCapture_v2, 10010)                                                                                  \
    X(cuStreamEndCapture, 10000)                                                                                       \
    X(cuGraphInstantiateWithFlags, 11040)                                                                              \
    X(cuGraphLaunch, 10000)                                                                                            \
    X(cuGraphDestroy, 10000)                                                                                           \
    X(cuGraphExecDestroy, 10000)                                                                                       \
    X(cuIpcGetMemHandle, 4010)                                                                                         \
    X(cuIpcOpenMemHandle_v2, 11000)                                                                                    \
    X(cuIpcCloseMemHandle, 4010)                                                                                       \
    X(cuInit, 2000)                                                                                                    \
    X(cuDeviceGetCount, 2000)                                                                                          \
    X(cuDeviceGet, 2000)                                                                                               \
    X(cuDeviceTotalMem_v2, 3020)                                                                                       \
    X(cuCtxCreate_v2, 3020)                                                                                            \
    X(cuCtxDestroy_v2, 4000)                                                                                           \
    X(cuCtxSetCurrent, 4000)                                                                                           \
    X(cuCtxSynchronize, 2000)                                                                                          \
    X(cuDevicePrimaryCtxRetain, 7000)                                                                                  \
    X(cuDevicePrimaryCtxRelease_v2, 11000)                                                                             \
    X(cuDevicePrimaryCtxReset_v2, 11000)                                                                               \
    X(cuMemGetInfo_v2, 3020)                                                                                           \
    X(cuMemAlloc_v2, 3020)                                                                                             \
    X(cuMemFree_v2, 3020)                                                                                              \
    X(cuMemAllocManaged, 6000)                                                                                         \
    X(cuMemAllocPitch_v2, 3020)                                                                                        \
    X(cuMemAllocAsync, 11020)                                                                                          \
    X(cuMemAllocAsync_ptsz, 11020)                                                                                     \
    X(cuMemAllocFromPoolAsync, 11020)                                                                                  \
    X(cuMemFreeAsync, 11020)                                                                                           \
    X(cuMemFreeAsync_ptsz, 11020)                                                                                      \
    X(cuMemPoolCreate, 11020)                                                                                          \
    X(cuMemPoolDestroy, 11020)                                                                                         \
    X(cuStreamSynchronize, 2000)                                                                                       \
    X(cuMemCreate, 10020)                                                                                              \
    X(cuMemRelease, 10020)                                                                                             \
    X(cuMemExportToShareableHandle, 10020)                                                                             \
    X(cuMemImportFromShareableHandle, 10020)                                                                           \
    X(cuMemAddressReserve, 10020)                                                                                      \
    X(cuMemMap, 10020)                                                                                                 \
    X(cuMemUnmap, 10020)                                                                                               \
    X(cuArrayCreate_v2, 3020)                                                                                          \
    X(cuArray3DCreate_v2, 3020)                                                                                        \
    X(cuArrayDestroy, 2000)                                                                                            \
    X(cuMipmappedArrayCreate, 5000)                                                                                    \
    X(cuMipmappedArrayDestroy, 5000)

#define FIELD(name, version) __typeof__(name) *name;
struct calls { CALLS(FIELD) };
#undef FIELD

extern struct calls calls;
#define CALL(name) (calls.name)

/* Fills `calls` by "linked", "dlopen", "next", "procaddress", "procaddress1" or "deepbind"; ends the program when a
 * function is not found that way. */
void calls_find(const char *way);

/* Ends the program with a message when the call fails. */
#define NEED(call) need((call), #call, __LINE__)
void need(CUresult result, const char *call, int line);

#endif
