/* Virtual memory management: addresses and memory apart, in granules of 2 MiB. Memory is charged when it is created,
 * mapped or not. Data belongs to the addresses: memory mapped at two places shows two contents. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "imports.h"
#include "memory.h"

#define HANDLE_MAGIC 0x564d4d48u

typedef struct {
    uint32_t magic, references;
    device *dev;
    size_t size;
    uint32_t mib;
    CUmemAllocationProp prop;
    imported what;  /* number 0: never exported; an owner other than this process: imported */
} handle;

/* What an exported file contains. */
typedef struct {
    uint64_t size;
    CUmemAllocationProp prop;
    imported what;
    handle *here; /* in the owner's process */
} ticket;

static uint64_t identity(void) { return driver.m.processes[driver.slot].identity; }

static handle *handle_of(CUmemGenericAllocationHandle value) {
    handle *h = (handle *)(uintptr_t)value;
    return h != NULL && h->magic == HANDLE_MAGIC ? h : NULL;
}

static void drop(handle *h) {
    if (--h->references > 0) return;
    if (h->what.number != 0 && h->what.owner != identity()) imports_close(&driver.m, &h->what, identity());
    else if (h->what.number == 0 || !imports_linger(&driver.m, &h->what)) charge_give(h->dev, h->mib);
    h->magic = 0;
    free(h);
}

SIM_API CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                               CUmemAllocationGranularity_flags option) {
    (void)option;
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (granularity == NULL || prop == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (driver_device(prop->location.id) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    *granularity = PAGE_BYTES;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                             unsigned long long flags) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL || prop == NULL || flags != 0 || size == 0 || size % PAGE_BYTES != 0 ||
        prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    device *dev = driver_device(prop->location.id);
    if (dev == NULL) return CUDA_ERROR_INVALID_DEVICE;
    handle *h = calloc(1, sizeof *h);
    uint32_t mib = memory_blocks_mib(size);
    driver_lock();
    bool taken = h != NULL && charge_take(dev, mib);
    driver_unlock();
    if (!taken) {
        free(h);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *h = (handle){.magic = HANDLE_MAGIC, .references = 1, .dev = dev, .size = size, .mib = mib, .prop = *prop};
    *out = (CUmemGenericAllocationHandle)(uintptr_t)h;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemRelease(CUmemGenericAllocationHandle value) {
    driver_lock();
    handle *h = handle_of(value);
    if (h != NULL) drop(h);
    driver_unlock();
    return h != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr wish,
                                     unsigned long long flags) {
    (void)wish;
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL || size == 0 || size % PAGE_BYTES != 0 || flags != 0 || (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    CUdeviceptr start = arena_reserve(size);
    driver_unlock();
    if (start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = start;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemAddressFree(CUdeviceptr start, size_t size) {
    driver_lock();
    bool right = arena_contains(start) && start % PAGE_BYTES == 0 && size > 0;
    for (size_t at = 0; right && at < size; at += PAGE_BYTES) right = arena_get(start + at) == NULL;
    if (right) arena_release(start, size);
    driver_unlock();
    return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemMap(CUdeviceptr start, size_t size, size_t offset, CUmemGenericAllocationHandle value,
                          unsigned long long flags) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (flags != 0 || size == 0 || size % PAGE_BYTES != 0 || start % PAGE_BYTES != 0) return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    handle *h = handle_of(value);
    bool right = h != NULL && offset <= h->size && size <= h->size - offset;
    for (size_t at = 0; right && at < size; at += PAGE_BYTES)
        right = arena_contains(start + at) && arena_get(start + at) == NULL;
    allocation *a = right ? calloc(1, sizeof *a) : NULL;
    if (a != NULL) {
        *a = (allocation){.start = start, .size = size, .kind = KIND_VIRTUAL, .dev = h->dev, .extra = h};
        arena_set(start, size, a);
        h->references++;
    }
    driver_unlock();
    return a != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemUnmap(CUdeviceptr start, size_t size) {
    CUresult result = CUDA_SUCCESS;
    driver_lock();
    for (size_t at = 0; at < size && result == CUDA_SUCCESS;) {
        allocation *a = memory_find(start + at);
        if (a == NULL || a->kind != KIND_VIRTUAL || a->start != start + at || a->size > size - at) {
            result = CUDA_ERROR_INVALID_VALUE;
            break;
        }
        at += a->size;
        if (a->touched) arena_discard(a->start, a->size);
        arena_set(a->start, a->size, NULL);
        drop(a->extra);
        free(a);
    }
    driver_unlock();
    return result;
}

SIM_API CUresult cuMemSetAccess(CUdeviceptr start, size_t size, const CUmemAccessDesc *desc, size_t count) {
    if (desc == NULL || count == 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    allocation *a = memory_find(start);
    driver_unlock();
    return a != NULL && a->kind == KIND_VIRTUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr at) {
    if (flags == NULL || location == NULL) return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    allocation *a = memory_find(at);
    driver_unlock();
    *flags = a != NULL && driver_device(location->id) == a->dev ? 3 : 0;
    return a != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle value) {
    handle *h = handle_of(value);
    if (h == NULL || prop == NULL) return CUDA_ERROR_INVALID_VALUE;
    *prop = h->prop;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *at) {
    driver_lock();
    allocation *a = memory_find((CUdeviceptr)(uintptr_t)at);
    bool right = out != NULL && a != NULL && a->kind == KIND_VIRTUAL;
    if (right) {
        handle *h = a->extra;
        h->references++;
        *out = (CUmemGenericAllocationHandle)(uintptr_t)h;
    }
    driver_unlock();
    return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle value, CUmemAllocationHandleType type,
                                              unsigned long long flags) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    driver_lock();
    handle *h = handle_of(value);
    bool right = out != NULL && flags == 0 && h != NULL && (h->prop.requestedHandleTypes & type) != 0;
    if (right && h->what.number == 0)
        h->what = (imported){.owner = identity(), .number = ++driver.next_id, .gpu = h->dev->gpu, .slot = driver.slot,
                             .mib = h->mib};
    ticket t = right ? (ticket){.size = h->size, .prop = h->prop, .what = h->what, .here = h} : (ticket){0};
    driver_unlock();
    if (!right) return CUDA_ERROR_INVALID_VALUE;
    int file = memfd_create("simgpu", MFD_CLOEXEC);
    if (file < 0 || pwrite(file, &t, sizeof t, 0) != sizeof t) {
        if (file >= 0) close(file);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *(int *)out = file;
    return CUDA_SUCCESS;
}

/* Charged to its owner until nobody has it open. As long as the file is open but nobody has it imported, it does not keep
 * the memory; the real driver's does. */
SIM_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *file,
                                                CUmemAllocationHandleType type) {
    ticket t;
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    if (out == NULL || pread((int)(intptr_t)file, &t, sizeof t, 0) != sizeof t) return CUDA_ERROR_INVALID_VALUE;
    device *dev = driver_device(t.prop.location.id);
    if (dev == NULL || driver.m.processes[t.what.slot].identity != t.what.owner) return CUDA_ERROR_INVALID_VALUE;
    bool own = t.what.owner == identity();
    handle *h = own ? t.here : calloc(1, sizeof *h);
    if (h == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_SUCCESS;
    driver_lock();
    if (own) h->references++;
    else if (imports_open(&driver.m, &t.what, identity()))
        *h = (handle){.magic = HANDLE_MAGIC, .references = 1, .dev = dev, .size = t.size, .prop = t.prop, .what = t.what};
    else result = CUDA_ERROR_OUT_OF_MEMORY;
    driver_unlock();
    if (result == CUDA_SUCCESS) *out = (CUmemGenericAllocationHandle)(uintptr_t)h;
    else free(h);
    return result;
}
