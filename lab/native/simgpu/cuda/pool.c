#include "cuda/pool.h"

#include "cuda/capture.h"
#include "cuda/charge.h"
#include "cuda/driver.h"
#include "cuda/ordered_free.h"

#include <stdlib.h>

static CUmemoryPool pools;

void pool_after_fork(void)
{
    pools = NULL;
}

static CUmemoryPool create(struct device *dev, size_t limit)
{
    CUmemoryPool pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    *pool = (struct CUmemPoolHandle_st){.dev = dev,
                                        .limit_mib = limit != 0 ? charge_round_up_mib(limit) : UINT32_MAX,
                                        .reuse = {1, 1, 1},
                                        .next = pools};
    pools = pool;
    return pool;
}

CUmemoryPool pool_default(struct device *dev)
{
    if (dev->default_pool == NULL) {
        dev->default_pool = create(dev, 0);
        if (dev->default_pool != NULL)
            dev->default_pool->of_device = true;
        if (dev->current_pool == NULL)
            dev->current_pool = dev->default_pool;
    }
    return dev->default_pool;
}

bool pool_exists(CUmemoryPool pool)
{
    for (CUmemoryPool p = pools; p != NULL; p = p->next)
        if (p == pool)
            return true;
    return false;
}

void pool_shrink(CUmemoryPool pool, uint64_t keep)
{
    uint64_t used = pool->used + pool->waiting;
    uint32_t need = charge_round_up_mib(used > keep ? used : keep);
    if (pool->reserved_mib <= need)
        return;
    charge_give(pool->dev, pool->reserved_mib - need);
    pool->reserved_mib = need;
}

void pool_trim_all(struct device *dev)
{
    for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
        if (pool->dev == dev)
            pool_shrink(pool, 0);
}

void pool_trim_idle(struct device *dev)
{
    driver_lock();
    ordered_free_collect();
    for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
        if (pool->dev == dev)
            pool_shrink(pool, pool->threshold);
    driver_unlock();
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    struct device *dev;
    TRY(driver_check_ready());
    if (out == NULL || props == NULL || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(device_find(props->location.id, &dev));
    if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    driver_lock();
    *out = create(dev, props->maxSize);
    driver_unlock();
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void destroy(CUmemoryPool pool)
{
    pool_shrink(pool, 0);
    if (pool->dev->current_pool == pool)
        pool->dev->current_pool = pool->dev->default_pool;
    CUmemoryPool *at = &pools;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    pool->destroyed = true;
    if (pool->used + pool->waiting == 0)
        free(pool);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    TRY(driver_check_ready());
    driver_lock();
    ordered_free_collect();
    bool valid = pool_exists(pool) && !pool->of_device;
    if (valid)
        destroy(pool);
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    TRY(driver_check_ready());
    TRY(capture_check_safe());
    driver_lock();
    ordered_free_collect();
    bool valid = pool_exists(pool);
    if (valid)
        pool_shrink(pool, keep);
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult find_pools(CUdevice ordinal, struct device **dev)
{
    TRY(device_find(ordinal, dev));
    driver_lock();
    bool found = pool_default(*dev) != NULL;
    driver_unlock();
    return found ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice ordinal)
{
    struct device *dev;
    TRY(find_pools(ordinal, &dev));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = dev->default_pool;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice ordinal)
{
    struct device *dev;
    TRY(find_pools(ordinal, &dev));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = dev->current_pool;
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool)
{
    struct device *dev;
    TRY(find_pools(ordinal, &dev));
    if (!pool_exists(pool) || pool->dev != dev)
        return CUDA_ERROR_INVALID_VALUE;
    dev->current_pool = pool;
    return CUDA_SUCCESS;
}

/* Attributes of pools, and which devices may access them. */

static CUresult check(CUmemoryPool pool, const void *value)
{
    TRY(driver_check_ready());
    return value != NULL && pool_exists(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    TRY(check(pool, value));
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attribute - 1] = *(int *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(cuuint64_t *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (*(cuuint64_t *)value != 0)
        return CUDA_ERROR_INVALID_VALUE; /* the highest value so far can only be reset */
    if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        pool->used_high = pool->used;
    else
        pool->reserved_high_mib = pool->reserved_mib;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    TRY(check(pool, value));
    TRY(capture_check_safe());
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = pool->reuse[attribute - 1];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = pool->threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->reserved_mib * MIB;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = pool->reserved_high_mib * MIB;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->used;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = pool->used_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    (void)map, (void)count;
    return pool_exists(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    if (!pool_exists(pool) || flags == NULL || location == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = device_at(location->id) != NULL ? 3 : 0;
    return CUDA_SUCCESS;
}
