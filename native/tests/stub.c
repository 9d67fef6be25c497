/* What a static stub archive of libcuda contains: functions that load the driver when they are called. */
#include "cuda_prototypes.h"

#include <dlfcn.h>
#include <string.h>

static void *real(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    return library == NULL ? NULL : dlsym(library, name);
}

#define STUB(name, parameters, ...)                                                                                    \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        __typeof__(name) *function = real(#name);                                                                      \
        return function == NULL ? CUDA_ERROR_NOT_FOUND : function(__VA_ARGS__);                                        \
    }
STUB(cuInit, (unsigned flags), flags)
STUB(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), context, device)
STUB(cuCtxSetCurrent, (CUcontext context), context)
STUB(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes), pointer, bytes)
STUB(cuMemAllocAsync_ptsz, (CUdeviceptr * pointer, size_t bytes, CUstream stream), pointer, bytes, stream)

void *linked_find(const char *wanted);
void *linked_find(const char *wanted)
{
#define FIND(name)                                                                                                     \
    if (strcmp(wanted, #name) == 0)                                                                                    \
        return (void *)name;
    FIND(cuInit)
    FIND(cuDevicePrimaryCtxRetain)
    FIND(cuCtxSetCurrent)
    FIND(cuMemAlloc_v2)
    return NULL;
}
