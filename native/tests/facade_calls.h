/* The driver's functions as a test program reaches them: CALL(name)(arguments). How a name is found is decided when
 * the program starts, by the way that its first argument names. */
#ifndef FACADE_CALLS_H
#define FACADE_CALLS_H

#include "cuda_min.h"

#define CALLS(X)                                                                                                      \
    X(cuModuleLoadData, 2000, (CUmodule *, const void *)) \
    X(cuModuleGetFunction, 2000, (CUfunction *, CUmodule, const char *)) \
    X(cuLaunchKernel, 4000,                                                                                               \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
    X(cuStreamCreate, 2000, (CUstream *, unsigned)) \
    X(cuStreamBeginCapture_v2, 10010, (CUstream, CUstreamCaptureMode)) \
    X(cuStreamEndCapture, 10000, (CUstream, CUgraph *)) \
    X(cuGraphInstantiateWithFlags, 11040, (CUgraphExec *, CUgraph, unsigned long long)) \
    X(cuGraphLaunch, 10000, (CUgraphExec, CUstream)) \
    X(cuGraphDestroy, 10000, (CUgraph)) \
    X(cuGraphExecDestroy, 10000, (CUgraphExec)) \
    X(cuIpcGetMemHandle, 4010, (CUipcMemHandle *, CUdeviceptr)) \
    X(cuIpcOpenMemHandle_v2, 11000, (CUdeviceptr *, CUipcMemHandle, unsigned)) \
    X(cuIpcCloseMemHandle, 4010, (CUdeviceptr)) \
    X(cuInit, 2000, (unsigned))                                                                                       \
    X(cuDeviceGetCount, 2000, (int *))                                                                                \
    X(cuDeviceGet, 2000, (CUdevice *, int))                                                                           \
    X(cuDeviceTotalMem_v2, 3020, (size_t *, CUdevice))                                                                \
    X(cuCtxCreate_v2, 3020, (CUcontext *, unsigned, CUdevice))                                                        \
    X(cuCtxDestroy_v2, 4000, (CUcontext))                                                                             \
    X(cuCtxSetCurrent, 4000, (CUcontext))                                                                             \
    X(cuCtxSynchronize, 2000, (void))                                                                                 \
    X(cuDevicePrimaryCtxRetain, 7000, (CUcontext *, CUdevice))                                                        \
    X(cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice))                                                                \
    X(cuDevicePrimaryCtxReset_v2, 11000, (CUdevice))                                                                  \
    X(cuMemGetInfo_v2, 3020, (size_t *, size_t *))                                                                    \
    X(cuMemAlloc_v2, 3020, (CUdeviceptr *, size_t))                                                                   \
    X(cuMemFree_v2, 3020, (CUdeviceptr))                                                                              \
    X(cuMemAllocManaged, 6000, (CUdeviceptr *, size_t, unsigned))                                                     \
    X(cuMemAllocPitch_v2, 3020, (CUdeviceptr *, size_t *, size_t, size_t, unsigned))                                  \
    X(cuMemAllocAsync, 11020, (CUdeviceptr *, size_t, CUstream))                                                      \
    X(cuMemAllocAsync_ptsz, 11020, (CUdeviceptr *, size_t, CUstream))                                                 \
    X(cuMemAllocFromPoolAsync, 11020, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))                                \
    X(cuMemFreeAsync, 11020, (CUdeviceptr, CUstream))                                                                 \
    X(cuMemFreeAsync_ptsz, 11020, (CUdeviceptr, CUstream))                                                            \
    X(cuMemPoolCreate, 11020, (CUmemoryPool *, const CUmemPoolProps *))                                               \
    X(cuMemPoolDestroy, 11020, (CUmemoryPool))                                                                        \
    X(cuStreamSynchronize, 2000, (CUstream))                                                                          \
    X(cuMemCreate, 10020, (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long))  \
    X(cuMemRelease, 10020, (CUmemGenericAllocationHandle))                                                            \
    X(cuMemAddressReserve, 10020, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))                   \
    X(cuMemMap, 10020, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))               \
    X(cuMemUnmap, 10020, (CUdeviceptr, size_t))                                                                       \
    X(cuArrayCreate_v2, 3020, (CUarray *, const CUDA_ARRAY_DESCRIPTOR *))                                             \
    X(cuArray3DCreate_v2, 3020, (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *))                                         \
    X(cuArrayDestroy, 2000, (CUarray))                                                                                \
    X(cuMipmappedArrayCreate, 5000, (CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned))                  \
    X(cuMipmappedArrayDestroy, 5000, (CUmipmappedArray))

#define FIELD(name, version, parameters) CUresult(*name) parameters;
struct calls {
    CALLS(FIELD)
};
#undef FIELD

extern struct calls calls;
#define CALL(name) (calls.name)

/* Fills `calls` by "linked", "dlopen", "next", "procaddress", "procaddress1" or "deepbind"; ends the program when a
 * function is not found that way. */
void calls_find(const char *way);

/* Ends the program with a line when the call does not succeed. */
#define NEED(call) need((call), #call, __LINE__)
void need(CUresult result, const char *call, int line);

#endif
