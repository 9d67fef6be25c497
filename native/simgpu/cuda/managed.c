/* Managed memory of this process. Where it lies is in core/paging.c. */
#include "memory.h"
#include "paging.h"

void managed_forget(allocation *a) { paging_give(&driver.m, a->dev->gpu, driver.slot, a->managed_mib); }

SIM_API CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned int flags) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (out == NULL || size == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    allocation *a;
    driver_lock();
    result = memory_new(ctx, KIND_MANAGED, size, &a);
    if (result == CUDA_SUCCESS) {
        uint32_t mib = memory_blocks_mib(size);
        a->touched = true; /* the program may write to it without our knowing */
        if (paging_take(&driver.m, ctx->dev->gpu, driver.slot, mib)) {
            a->managed_mib = mib;
            *out = a->start;
        } else {
            memory_free(a);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    driver_unlock();
    return result;
}

static CUresult accept(void) {
    CUcontext ctx;
    return context_needed(&ctx);
}

SIM_API CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t size, CUdevice to, CUstream stream) {
    (void)at, (void)size, (void)to, (void)stream;
    return accept();
}

SIM_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr at, size_t size, CUmemLocation to, unsigned int flags, CUstream stream) {
    (void)at, (void)size, (void)to, (void)flags, (void)stream;
    return accept();
}

SIM_API CUresult cuMemAdvise(CUdeviceptr at, size_t size, CUmem_advise advice, CUdevice ordinal) {
    (void)at, (void)size, (void)advice, (void)ordinal;
    return accept();
}

SIM_API CUresult cuMemAdvise_v2(CUdeviceptr at, size_t size, CUmem_advise advice, CUmemLocation location) {
    (void)at, (void)size, (void)advice, (void)location;
    return accept();
}

SIM_API CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute, CUdeviceptr at,
                                        size_t count) {
    (void)data, (void)size, (void)attribute, (void)at, (void)count;
    return CUDA_ERROR_NOT_SUPPORTED;
}

SIM_API CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr at, size_t length, unsigned int flags) {
    (void)stream, (void)at, (void)length, (void)flags;
    return accept();
}
