#include "managed.h"

#include "driver.h"
#include "paging.h"

void managed_free(allocation *a)
{
    paging_give(&driver.m, a->dev->gpu, driver.slot, a->managed_mib);
}

static CUresult allocate(CUcontext ctx, size_t size, CUdeviceptr *out)
{
    allocation *a;
    uint32_t mib = memory_round_up_mib(size);
    TRY(memory_allocate(ctx, KIND_MANAGED, size, &a));
    a->touched = true; /* the program may write to it without a call */
    if (!paging_take(&driver.m, ctx->dev->gpu, driver.slot, mib)) {
        memory_free(a);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    a->managed_mib = mib;
    *out = a->start;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned int flags)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (out == NULL || size == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    CUresult result = allocate(ctx, size, out);
    driver_unlock();
    return result;
}

/* For hints, which change nothing: every kernel is assumed to use all managed memory. */
static CUresult ignore_hint(void)
{
    CUcontext ctx;
    return context_require(&ctx);
}

CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t size, CUdevice to, CUstream stream)
{
    (void)at, (void)size, (void)to, (void)stream;
    return ignore_hint();
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr at, size_t size, CUmemLocation to, unsigned int flags, CUstream stream)
{
    (void)at, (void)size, (void)to, (void)flags, (void)stream;
    return ignore_hint();
}

CUresult cuMemAdvise(CUdeviceptr at, size_t size, CUmem_advise advice, CUdevice ordinal)
{
    (void)at, (void)size, (void)advice, (void)ordinal;
    return ignore_hint();
}

CUresult cuMemAdvise_v2(CUdeviceptr at, size_t size, CUmem_advise advice, CUmemLocation location)
{
    (void)at, (void)size, (void)advice, (void)location;
    return ignore_hint();
}

CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute, CUdeviceptr at, size_t count)
{
    (void)data, (void)size, (void)attribute, (void)at, (void)count;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr at, size_t length, unsigned int flags)
{
    (void)stream, (void)at, (void)length, (void)flags;
    return ignore_hint();
}
