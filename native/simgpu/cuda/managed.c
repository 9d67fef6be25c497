/* Managed memory: what does not fit on the device lies on the host. Which part lies where is decided in blocks when
 * memory is allocated, and changed when this process needs room for plain memory. */
#include "memory.h"

static bool spill(allocation *a, uint32_t mib) {
    uint64_t spilled = 0;
    for (uint32_t gpu = 0; gpu < driver.m.head->gpu_count; gpu++)
        for (uint32_t slot = 0; slot < machine_slots_used(&driver.m); slot++)
            if (slots_pid(&driver.m, slot) != 0)
                spilled += __atomic_load_n(&machine_cell(&driver.m, gpu, slot)->spilled_mib, __ATOMIC_SEQ_CST);
    if (spilled + mib > driver.m.head->host_mib) return false;
    __atomic_add_fetch(&device_cell(a->dev)->spilled_mib, mib, __ATOMIC_SEQ_CST);
    a->spilled_mib += mib;
    return true;
}

static bool settle(allocation *a) {
    uint32_t wanted = memory_blocks_mib(a->size);
    slots_sweep(&driver.m, 0);
    for (;;) {
        uint32_t left = device_record(a->dev)->memory_mib - ledger_used(&driver.m, a->dev->gpu);
        uint32_t part = wanted < left ? wanted : left / 2 * 2;
        if (part > 0 && !ledger_take(&driver.m, a->dev->gpu, driver.slot, part)) continue; /* somebody was faster */
        a->charged_mib = part;
        if (part == wanted || spill(a, wanted - part)) return true;
        charge_give(a->dev, part);
        a->charged_mib = 0;
        return false;
    }
}

bool managed_evict(device *dev, uint32_t mib) {
    for (allocation *a = dev->managed; a != NULL && mib > 0; a = a->next_managed) {
        uint32_t part = a->charged_mib < mib ? a->charged_mib : mib;
        if (part == 0 || !spill(a, part)) continue;
        a->charged_mib -= part;
        charge_give(dev, part);
        mib -= part;
    }
    return mib == 0;
}

void managed_forget(allocation *a) {
    __atomic_sub_fetch(&device_cell(a->dev)->spilled_mib, a->spilled_mib, __ATOMIC_SEQ_CST);
    for (allocation **at = &a->dev->managed; *at != NULL; at = &(*at)->next_managed)
        if (*at == a) {
            *at = a->next_managed;
            return;
        }
}

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
        a->touched = true; /* the program may write to it without our knowing */
        a->next_managed = ctx->dev->managed;
        ctx->dev->managed = a;
        if (settle(a)) *out = a->start;
        else {
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
