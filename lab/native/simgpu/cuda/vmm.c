#include "cuda/vmm.h"

#include "cuda/charge.h"
#include "cuda/driver.h"
#include "cuda/exported.h"
#include "cuda/memory.h"
#include "cuda/reclaim.h"

#include <stdlib.h>

#define MEMORY_MAGIC 0x564d4d48

struct vmm_memory *vmm_find(CUmemGenericAllocationHandle handle)
{
    struct vmm_memory *memory = (struct vmm_memory *)(uintptr_t)handle;
    return memory != NULL && memory->magic == MEMORY_MAGIC ? memory : NULL;
}

CUmemGenericAllocationHandle vmm_handle(struct vmm_memory *memory)
{
    return (CUmemGenericAllocationHandle)(uintptr_t)memory;
}

void vmm_fill(struct vmm_memory *memory, struct device *dev, size_t size, const CUmemAllocationProp *prop)
{
    *memory = (struct vmm_memory){.magic = MEMORY_MAGIC, .references = 1, .dev = dev, .size = size, .prop = *prop};
}

static void release(struct vmm_memory *memory)
{
    if (--memory->references > 0)
        return;
    bool exported = memory->what.number != 0;
    if (exported && !exported_is_own(&memory->what))
        exported_close(&memory->what);
    else if (!exported || !exported_mark_freed(&memory->what))
        charge_give(memory->dev, memory->mib);
    memory->magic = 0;
    free(memory);
}

static bool is_granules(size_t size)
{
    return size != 0 && size % PAGE_BYTES == 0;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    struct device *dev;
    (void)option;
    TRY(driver_check_ready());
    if (granularity == NULL || prop == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(device_find(prop->location.id, &dev));
    *granularity = PAGE_BYTES;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
    struct device *dev;
    TRY(driver_check_ready());
    if (out == NULL || prop == NULL || flags != 0 || !is_granules(size) ||
        prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(device_find(prop->location.id, &dev));
    struct vmm_memory *memory = calloc(1, sizeof *memory);
    uint32_t mib = charge_round_up_mib(size);
    driver_lock();
    bool taken = memory != NULL && reclaim_take(dev, mib);
    driver_unlock();
    if (!taken) {
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    vmm_fill(memory, dev, size, prop);
    memory->mib = mib;
    *out = vmm_handle(memory);
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    driver_lock();
    struct vmm_memory *memory = vmm_find(handle);
    if (memory != NULL)
        release(memory);
    driver_unlock();
    return memory != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Whether all of these pages are reserved, and nothing is mapped there. */
static bool is_unmapped(CUdeviceptr start, size_t size)
{
    for (size_t at = 0; at < size; at += PAGE_BYTES)
        if (!arena_contains(start + at) || arena_get(start + at) != NULL)
            return false;
    return true;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)
{
    (void)wish;
    TRY(driver_check_ready());
    if (out == NULL || !is_granules(size) || flags != 0 || (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    CUdeviceptr start = arena_reserve(size);
    driver_unlock();
    if (start == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = start;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr start, size_t size)
{
    driver_lock();
    bool valid = start % PAGE_BYTES == 0 && size > 0 && is_unmapped(start, size);
    if (valid)
        arena_release(start, size);
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Called with the lock held. */
static bool map(CUdeviceptr start, size_t size, struct vmm_memory *memory)
{
    struct allocation *a = calloc(1, sizeof *a);
    if (a == NULL)
        return false;
    *a = (struct allocation){.start = start, .size = size, .kind = KIND_VIRTUAL, .dev = memory->dev, .extra = memory};
    arena_set(start, size, a);
    memory->references++;
    return true;
}

CUresult cuMemMap(CUdeviceptr start, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    TRY(driver_check_ready());
    if (flags != 0 || !is_granules(size) || start % PAGE_BYTES != 0)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    struct vmm_memory *memory = vmm_find(handle);
    bool valid = memory != NULL && offset <= memory->size && size <= memory->size - offset && is_unmapped(start, size);
    bool mapped = valid && map(start, size, memory);
    driver_unlock();
    return mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void unmap(struct allocation *a)
{
    if (a->touched)
        arena_discard(a->start, a->size);
    arena_set(a->start, a->size, NULL);
    release(a->extra);
    free(a);
}

CUresult cuMemUnmap(CUdeviceptr start, size_t size)
{
    bool valid = true;
    driver_lock();
    for (size_t at = 0; valid && at < size;) {
        struct allocation *a = memory_find(start + at);
        valid = a != NULL && a->kind == KIND_VIRTUAL && a->start == start + at && a->size <= size - at;
        if (valid) {
            at += a->size;
            unmap(a);
        }
    }
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr start, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    if (desc == NULL || count == 0 || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    struct allocation *a = memory_find(start);
    driver_unlock();
    return a != NULL && a->kind == KIND_VIRTUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr at)
{
    if (flags == NULL || location == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    struct allocation *a = memory_find(at);
    driver_unlock();
    *flags = a != NULL && device_at(location->id) == a->dev ? 3 : 0;
    return a != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    struct vmm_memory *memory = vmm_find(handle);
    if (memory == NULL || prop == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = memory->prop;
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *at)
{
    driver_lock();
    struct allocation *a = memory_find((CUdeviceptr)(uintptr_t)at);
    bool valid = out != NULL && a != NULL && a->kind == KIND_VIRTUAL;
    if (valid) {
        struct vmm_memory *memory = a->extra;
        memory->references++;
        *out = vmm_handle(memory);
    }
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
