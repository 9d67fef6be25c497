/* A driver that knows more kinds of memory than the simulated one: everything succeeds, nothing is really there. Of one
 * GPU, whose UUID is all zeros. */
#include "cuda_min.h"

#include <stdint.h>
#include <string.h>

static uint64_t next = 0x10000;

CUresult cuInit(unsigned flags) { return flags; }
CUresult cuDeviceGetCount(int *count) { return *count = 1, 0; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) { return *device = ordinal, 0; }
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) { return memset(uuid, 0, sizeof *uuid), device; }
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) { return *pool = (CUmemoryPool)8, device; }

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
    (void)bytes, (void)prop;
    *handle = next++;
    return (CUresult)flags;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    (void)props;
    *pool = (CUmemoryPool)(uintptr_t)next++;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) { return pool == NULL; }

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)bytes, (void)stream;
    *pointer = next++;
    return pool == NULL;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **after, size_t *count)
{
    (void)stream, (void)id, (void)graph, (void)after, (void)count;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}
