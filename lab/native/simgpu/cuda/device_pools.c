/* The pools of a device: the default one, and the one that cuMemAllocAsync takes from. */
#include "cuda/driver.h"
#include "cuda/pool.h"

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
