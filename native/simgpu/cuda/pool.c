/* Stream-ordered memory. A pool takes memory from the device in big steps and keeps what it has until the program
 * waits for the device; then it gives back what lies above its release threshold. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "memory.h"

#define STEP_MIB 32u

struct CUmemPoolHandle_st {
    device *dev;
    bool of_device;   /* the default pool; it cannot be destroyed */
    bool destroyed;   /* it goes with the last allocation from it */
    uint64_t threshold, used, used_high;
    uint32_t reserved_mib, reserved_high_mib, limit_mib;
    int reuse[3];
    CUmemoryPool next;
};

static CUmemoryPool pools;
static uint32_t pools_generation;

static uint32_t needed_mib(uint64_t used) { return (uint32_t)((used + PAGE_BYTES - 1) / PAGE_BYTES * (PAGE_BYTES / MIB)); }

static CUmemoryPool make(device *dev, size_t limit) {
    CUmemoryPool pool = calloc(1, sizeof *pool);
    if (pool == NULL) return NULL;
    pool->dev = dev;
    pool->limit_mib = limit != 0 ? needed_mib(limit) : UINT32_MAX;
    pool->reuse[0] = pool->reuse[1] = pool->reuse[2] = 1;
    if (pools_generation != driver.generation) pools = NULL;
    pools_generation = driver.generation;
    pool->next = pools;
    pools = pool;
    return pool;
}

static CUmemoryPool default_pool(device *dev) {
    if (dev->default_pool == NULL) {
        dev->default_pool = make(dev, 0);
        if (dev->default_pool != NULL) dev->default_pool->of_device = true;
        if (dev->current_pool == NULL) dev->current_pool = dev->default_pool;
    }
    return dev->default_pool;
}

static void shrink(CUmemoryPool pool, uint64_t keep) {
    uint32_t need = needed_mib(pool->used > keep ? pool->used : keep);
    if (pool->reserved_mib <= need) return;
    charge_give(pool->dev, pool->reserved_mib - need);
    pool->reserved_mib = need;
}

static bool grow(CUmemoryPool pool, uint32_t need) {
    while (pool->reserved_mib < need) {
        uint32_t more = need - pool->reserved_mib, step = (more + STEP_MIB - 1) / STEP_MIB * STEP_MIB;
        if (need > pool->limit_mib) return false;
        if (pool->reserved_mib + step <= pool->limit_mib && charge_take_once(pool->dev, step))
            more = step;
        else if (!charge_take(pool->dev, more)) return false; /* what this tries may shrink this very pool */
        pool->reserved_mib += more;
    }
    if (pool->reserved_mib > pool->reserved_high_mib) pool->reserved_high_mib = pool->reserved_mib;
    return true;
}

static CUresult allocate(CUcontext ctx, CUmemoryPool pool, size_t size, CUdeviceptr *out) {
    allocation *a;
    size_t rounded = (size + 511) / 512 * 512;
    if (size == 0 || out == NULL || pool == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (size > 1ull << 42 || !grow(pool, needed_mib(pool->used + rounded))) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = memory_new(ctx, KIND_POOL, size, &a);
    if (result != CUDA_SUCCESS) return result;
    a->pool = pool;
    pool->used += rounded;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
    *out = a->start;
    return CUDA_SUCCESS;
}

void pool_free(allocation *a) {
    CUmemoryPool pool = a->pool;
    if (pool == NULL) return;
    pool->used -= (a->size + 511) / 512 * 512;
    if (pool->destroyed && pool->used == 0) {
        shrink(pool, 0);
        free(pool);
    }
}

static void trim(device *dev, bool all) {
    if (pools_generation != driver.generation) return;
    for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
        if (pool->dev == dev) shrink(pool, all ? 0 : pool->threshold);
}

void pool_trim_all(device *dev) { trim(dev, true); }

void pool_trim_idle(device *dev) {
    driver_lock();
    trim(dev, false);
    driver_unlock();
}

static bool known(CUmemoryPool pool) {
    for (CUmemoryPool p = pools_generation == driver.generation ? pools : NULL; p != NULL; p = p->next)
        if (p == pool) return true;
    return false;
}

SIM_API CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream handle) {
    CUcontext ctx;
    CUstream stream;
    CUresult result = context_needed(&ctx);
    if (result == CUDA_SUCCESS) result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (stream->capture != NULL) return capture_allocate(stream, size, out);
    driver_lock();
    default_pool(ctx->dev);
    result = allocate(ctx, ctx->dev->current_pool, size, out);
    driver_unlock();
    return result;
}

SIM_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream handle) {
    CUcontext ctx;
    CUstream stream;
    CUresult result = context_needed(&ctx);
    if (result == CUDA_SUCCESS) result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    driver_lock();
    result = known(pool) ? allocate(ctx, pool, size, out) : CUDA_ERROR_INVALID_VALUE;
    driver_unlock();
    return result;
}

SIM_API CUresult cuMemFreeAsync(CUdeviceptr at, CUstream handle) {
    CUcontext ctx;
    CUstream stream;
    CUresult result = context_needed(&ctx);
    if (result == CUDA_SUCCESS) result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS || at == 0) return result;
    if (stream->capture != NULL) return capture_free(stream, at);
    driver_lock();
    allocation *a = memory_find(at);
    bool right = a != NULL && a->start == at && (a->kind == KIND_POOL || a->kind == KIND_PLAIN || a->kind == KIND_GRAPH);
    if (right) memory_free(a);
    driver_unlock();
    return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL || props == NULL || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    device *dev = driver_device(props->location.id);
    if (dev == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    driver_lock();
    *out = make(dev, props->maxSize);
    driver_unlock();
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    driver_lock();
    bool right = known(pool) && !pool->of_device;
    if (right) {
        shrink(pool, 0);
        if (pool->dev->current_pool == pool) pool->dev->current_pool = pool->dev->default_pool;
        CUmemoryPool *at = &pools;
        while (*at != pool) at = &(*at)->next;
        *at = pool->next;
        pool->destroyed = true;
        if (pool->used == 0) free(pool);
    }
    driver_unlock();
    return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult pool_of(CUmemoryPool *out, CUdevice ordinal, bool current) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    device *dev = driver_device(ordinal);
    if (dev == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (out == NULL) return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    *out = default_pool(dev);
    if (current) *out = dev->current_pool;
    driver_unlock();
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice ordinal) { return pool_of(out, ordinal, false); }

SIM_API CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice ordinal) { return pool_of(out, ordinal, true); }

SIM_API CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool) {
    CUmemoryPool own;
    CUresult result = pool_of(&own, ordinal, false);
    if (result != CUDA_SUCCESS) return result;
    if (!known(pool) || pool->dev != driver_device(ordinal)) return CUDA_ERROR_INVALID_VALUE;
    pool->dev->current_pool = pool;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    driver_lock();
    bool right = known(pool);
    if (right) shrink(pool, keep);
    driver_unlock();
    return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (value == NULL || !known(pool)) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: pool->reuse[attribute - 1] = *(int *)value; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(cuuint64_t *)value; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        if (*(cuuint64_t *)value != 0) return CUDA_ERROR_INVALID_VALUE; /* a high-water mark can only be reset */
        pool->reserved_high_mib = pool->reserved_mib;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(cuuint64_t *)value != 0) return CUDA_ERROR_INVALID_VALUE;
        pool->used_high = pool->used;
        break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (value == NULL || !known(pool)) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: *(int *)value = pool->reuse[attribute - 1]; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = pool->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)value = pool->reserved_mib * MIB; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = pool->reserved_high_mib * MIB; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = pool->used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = pool->used_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    (void)map, (void)count;
    return known(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location) {
    if (!known(pool) || flags == NULL || location == NULL) return CUDA_ERROR_INVALID_VALUE;
    *flags = driver_device(location->id) != NULL ? 3 : 0;
    return CUDA_SUCCESS;
}
