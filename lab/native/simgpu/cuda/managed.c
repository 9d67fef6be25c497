/* Managed memory of this process. core/paging.c decides where it is. */
#include "core/paging.h"
#include "cuda/charge.h"
#include "cuda/driver.h"
#include "cuda/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { PAGE_MIB = 2, SET_PREFERRED = 3, UNSET_PREFERRED = 4, HOST = -1 };

static const size_t PAGE = PAGE_MIB * MIB;

static void free_managed(struct allocation *a)
{
    uint32_t kept = atomic_fetch_sub(&a->dev->kept_mib, a->kept_mib) - a->kept_mib;
    paging_give(&driver.m, a->dev->gpu, driver.slot, a->managed_mib, kept);
    free(a->kept);
}

static CUresult allocate(CUcontext ctx, size_t size, CUdeviceptr *out)
{
    struct allocation *a;
    uint32_t mib = charge_round_up_mib(size);
    TRY(memory_allocate(ctx, KIND_MANAGED, size, &a));
    a->release = free_managed;
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

/* For hints that change nothing: every kernel is assumed to use all managed memory but what is to stay on the host. */
static CUresult ignore_hint(void)
{
    CUcontext ctx;
    return context_require(&ctx);
}

/* The managed memory that all of the range is in. */
static CUresult find(CUdeviceptr at, size_t size, struct allocation **out)
{
    struct allocation *a = memory_find(at);
    if (a == NULL || a->kind != KIND_MANAGED || size == 0 || size > a->start + a->size - at)
        return CUDA_ERROR_INVALID_VALUE;
    *out = a;
    return CUDA_SUCCESS;
}

/* Whole pages of the range stay on the host from now on, or no longer do. */
static CUresult keep(CUdeviceptr at, size_t size, bool on_host)
{
    struct allocation *a;
    TRY(find(at, size, &a));
    if (a->kept == NULL && (a->kept = calloc(a->managed_mib / PAGE_MIB, 1)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t from = (at - a->start + PAGE - 1) / PAGE, to = (at - a->start + size) / PAGE;
    for (size_t page = from; page < to; page++) {
        if (a->kept[page] == on_host)
            continue;
        a->kept[page] = on_host;
        a->kept_mib += on_host ? PAGE_MIB : -PAGE_MIB;
        atomic_fetch_add(&a->dev->kept_mib, (uint32_t)(on_host ? PAGE_MIB : -PAGE_MIB));
    }
    return CUDA_SUCCESS;
}

/* Only to the host: what a kernel needs moves in with it anyway. */
static CUresult prefetch(CUdeviceptr at, size_t size, CUdevice to)
{
    CUcontext ctx;
    struct allocation *a;
    TRY(context_require(&ctx));
    driver_lock();
    CUresult result = find(at, size, &a);
    uint32_t moved = 0;
    if (result == CUDA_SUCCESS && to == HOST)
        moved = paging_push(&driver.m, a->dev->gpu, driver.slot, (uint32_t)(size / PAGE) * PAGE_MIB);
    driver_unlock();
    driver_delay(moved * PAGING_US_PER_MIB);
    return result;
}

CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t size, CUdevice to, CUstream stream)
{
    (void)stream;
    return prefetch(at, size, to);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr at, size_t size, CUmemLocation to, unsigned int flags, CUstream stream)
{
    (void)at, (void)size, (void)to, (void)flags, (void)stream;
    return ignore_hint();
}

CUresult cuMemAdvise(CUdeviceptr at, size_t size, CUmem_advise advice, CUdevice ordinal)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (advice != UNSET_PREFERRED && (advice != SET_PREFERRED || ordinal != HOST))
        return CUDA_SUCCESS;
    driver_lock();
    CUresult result = keep(at, size, advice == SET_PREFERRED);
    driver_unlock();
    return result;
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
