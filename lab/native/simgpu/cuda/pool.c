#include "cuda/pool.h"

#include "cuda/charge.h"
#include "cuda/driver.h"

#include <stdlib.h>

#define STEP_MIB 32
#define PIECE_BYTES 512

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
                                        .limit_mib = limit != 0 ? memory_round_up_mib(limit) : UINT32_MAX,
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

static void shrink(CUmemoryPool pool, uint64_t keep)
{
    uint32_t need = memory_round_up_mib(pool->used > keep ? pool->used : keep);
    if (pool->reserved_mib <= need)
        return;
    charge_give(pool->dev, pool->reserved_mib - need);
    pool->reserved_mib = need;
}

static bool grow(CUmemoryPool pool, uint32_t need)
{
    while (pool->reserved_mib < need) {
        uint32_t more = need - pool->reserved_mib, step = (more + STEP_MIB - 1) / STEP_MIB * STEP_MIB;
        if (need > pool->limit_mib)
            return false;
        if (pool->reserved_mib + step <= pool->limit_mib && charge_take_once(pool->dev, step))
            more = step;
        else if (!charge_take(pool->dev, more))
            return false; /* what this tries may shrink this same pool */
        pool->reserved_mib += more;
    }
    if (pool->reserved_mib > pool->reserved_high_mib)
        pool->reserved_high_mib = pool->reserved_mib;
    return true;
}

static size_t round_up(size_t size)
{
    return (size + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
}

CUresult pool_allocate(CUmemoryPool pool, CUcontext ctx, size_t size, CUdeviceptr *out)
{
    struct allocation *a;
    if (size == 0 || out == NULL || pool == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > MEMORY_MAX_BYTES || !grow(pool, memory_round_up_mib(pool->used + round_up(size))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(memory_allocate(ctx, KIND_POOL, size, &a));
    a->pool = pool;
    pool->used += round_up(size);
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    *out = a->start;
    return CUDA_SUCCESS;
}

void pool_free(struct allocation *a)
{
    CUmemoryPool pool = a->pool;
    if (pool == NULL)
        return;
    pool->used -= round_up(a->size);
    if (pool->destroyed && pool->used == 0) {
        shrink(pool, 0);
        free(pool);
    }
}

void pool_trim_all(struct device *dev)
{
    for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
        if (pool->dev == dev)
            shrink(pool, 0);
}

void pool_trim_idle(struct device *dev)
{
    driver_lock();
    for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
        if (pool->dev == dev)
            shrink(pool, pool->threshold);
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
    shrink(pool, 0);
    if (pool->dev->current_pool == pool)
        pool->dev->current_pool = pool->dev->default_pool;
    CUmemoryPool *at = &pools;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    pool->destroyed = true;
    if (pool->used == 0)
        free(pool);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    TRY(driver_check_ready());
    driver_lock();
    bool valid = pool_exists(pool) && !pool->of_device;
    if (valid)
        destroy(pool);
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    TRY(driver_check_ready());
    driver_lock();
    bool valid = pool_exists(pool);
    if (valid)
        shrink(pool, keep);
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
