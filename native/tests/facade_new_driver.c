/* A driver that knows more kinds of memory than the simulated one: everything succeeds, and nothing exists. It has one
 * GPU, whose UUID is all zeros. */
#include "cuda_prototypes.h"

#include <stdint.h>
#include <string.h>

static uint64_t next = 0x10000;

CUresult cuInit(unsigned flags)
{
    return flags;
}
CUresult cuDeviceGetCount(int *count)
{
    return *count = 1, 0;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    return *device = ordinal, 0;
}
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return memset(uuid, 0, sizeof *uuid), device;
}
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    return *pool = (CUmemoryPool)8, device;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    return *context = (CUcontext)8, 0;
}
CUresult cuCtxGetDevice(CUdevice *device)
{
    return *device = 0, 0;
}

CUresult cuImportExternalMemory(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description)
{
    *memory = (CUexternalMemory)(uintptr_t)next++;
    return description->size == 0;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
    return memory == NULL;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
    (void)bytes, (void)prop;
    *handle = next++;
    return (CUresult)flags;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
                                        CUmemAllocationHandleType type)
{
    (void)shared;
    *handle = next++;
    return type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    *prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    return handle == 0;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    (void)bytes, (void)offset, (void)flags;
    return pointer == 0 || handle == 0;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes)
{
    return pointer == 0 || bytes == 0;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return handle == 0;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    (void)props;
    *pool = (CUmemoryPool)(uintptr_t)next++;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    *module = (CUmodule)(uintptr_t)next++;
    return image == NULL;
}

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
    *module = (CUmodule)(uintptr_t)next++;
    return file == NULL;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values, unsigned count,
                           CUlibraryOption *loading_options, void **loading_values, unsigned loading_count)
{
    (void)options, (void)values, (void)count, (void)loading_options, (void)loading_values, (void)loading_count;
    *library = (CUlibrary)(uintptr_t)next++;
    return image == NULL;
}

CUresult cuModuleUnload(CUmodule module)
{
    return module == NULL;
}
CUresult cuLibraryUnload(CUlibrary library)
{
    return library == NULL;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    (void)location;
    *pool = (CUmemoryPool)16;
    return type != CU_MEM_ALLOCATION_TYPE_MANAGED;
}

/* Addresses of other processes' allocations are returned as they are; each has 800 MiB. */
CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    memcpy(pointer, data, sizeof *pointer);
    return pool == NULL;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
    *base = pointer;
    *bytes = (size_t)800 << 20;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    return pointer == 0 || stream != NULL;
}
CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    return pointer == 0;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    return pool == NULL;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)bytes, (void)stream;
    *pointer = next++;
    return pool == NULL;
}

CUresult cuStreamQuery(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **after, size_t *count)
{
    (void)stream, (void)id, (void)graph, (void)after, (void)count;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static CUresult newer(void)
{
    return (CUresult)4711;
}

/* From a later CUDA: cuMemAlloc and cuMemcpyHtoD have new forms, and cuBrandNew exists. The result for what is absent
 * is the one of cuda.h unless ABSENT is another. */
#ifndef ABSENT
#define ABSENT CUDA_SUCCESS
#endif
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    int has_new_form = strcmp(symbol, "cuMemAlloc") == 0 || strcmp(symbol, "cuMemcpyHtoD") == 0;
    int is_new = strcmp(symbol, "cuBrandNew") == 0;
    int is_known = has_new_form || is_new || symbol[0] == 0;
    *function = NULL;
    if (is_known && version > 0 && (!is_new || version >= 14000))
        *function = is_new || (has_new_form && version >= 14000) ? (void *)newer : (void *)cuInit;
    if (status != NULL && *function != NULL)
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    else if (status != NULL)
        *status = is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function != NULL ? (CUresult)flags : ABSENT;
}

/* Every table contains `newer`, after its size. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    static const void *functions[2];
    functions[0] = (const void *)sizeof functions;
    functions[1] = (const void *)newer;
    *table = functions;
    return id->bytes[15] == 0 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    *context = (CUcontext)8;
    return flags + (unsigned)device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
