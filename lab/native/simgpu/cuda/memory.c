/* Device memory: cuMemAlloc and related calls, and how much memory there is. */
#include "cuda/memory.h"

#include "core/slots.h"
#include "core/timeline.h"
#include "cuda/capture.h"
#include "cuda/charge.h"
#include "cuda/driver.h"
#include "cuda/exported.h"
#include "cuda/ordered_free.h"
#include "cuda/reclaim.h"
#include "cuda/slab.h"

#include <stdlib.h>

#define SMALL_BYTES (1 * MIB)
#define SWEEP_PAUSE_NS 20000000
#define PITCH_BYTES 512

void memory_link(CUcontext ctx, struct allocation *a)
{
    a->ctx = ctx;
    a->previous = NULL;
    a->next = ctx->allocations;
    if (a->next != NULL)
        a->next->previous = a;
    ctx->allocations = a;
}

static void unlink_from_context(struct allocation *a)
{
    if (a->ctx == NULL)
        return;
    if (a->previous != NULL)
        a->previous->next = a->next;
    else
        a->ctx->allocations = a->next;
    if (a->next != NULL)
        a->next->previous = a->previous;
}

/* Addresses and a record, without a charge. */
static struct allocation *create_record(CUcontext ctx, enum allocation_kind kind, size_t size)
{
    struct allocation *a = calloc(1, sizeof *a);
    CUdeviceptr start = a != NULL ? arena_reserve(size) : 0;
    if (start == 0) {
        free(a);
        return NULL;
    }
    *a = (struct allocation){.start = start, .size = size, .kind = kind, .dev = ctx->dev};
    arena_set(start, size, a);
    return a;
}

static void destroy_record(struct allocation *a)
{
    if (a->touched)
        arena_discard(a->start, a->size);
    arena_set(a->start, a->size, NULL);
    arena_release(a->start, a->size);
    free(a);
}

/* Managed memory, pools and other processes are charged for these. */
static bool is_charged_elsewhere(enum allocation_kind kind)
{
    return kind == KIND_MANAGED || kind == KIND_POOL || kind == KIND_IPC;
}

CUresult memory_allocate(CUcontext ctx, enum allocation_kind kind, size_t size, struct allocation **out)
{
    if (kind == KIND_PLAIN && size <= SMALL_BYTES) {
        TRY(slab_allocate(ctx, size, out));
        memory_link(ctx, *out);
        return CUDA_SUCCESS;
    }
    struct allocation *a = size <= MEMORY_MAX_BYTES ? create_record(ctx, kind, size) : NULL;
    if (a == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint32_t mib = is_charged_elsewhere(kind) ? 0 : charge_round_up_mib(size);
    if (mib > 0 && !reclaim_take(a->dev, mib)) {
        destroy_record(a);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    a->charged_mib = mib;
    memory_link(ctx, a);
    *out = a;
    return CUDA_SUCCESS;
}

/* Marks an exported allocation as freed by its owner. True when others have it open, so that it stays charged. */
static bool is_open_elsewhere(const struct allocation *a)
{
    struct imported what = exported_describe(a->dev, a->exported, a->charged_mib);
    return exported_mark_freed(&what);
}

void memory_free(struct allocation *a)
{
    if (a == NULL)
        return; /* ended with its context */
    ordered_free_forget(a);
    unlink_from_context(a);
    if (a->kind == KIND_ARRAY)
        *(struct allocation **)a->extra = NULL;
    /* The record and its addresses are the graph's node's or the slab's, which may end with it. */
    bool borrowed = a->kind == KIND_GRAPH || a->shared_block;
    if (a->release != NULL)
        a->release(a);
    if (borrowed)
        return;
    if (a->exported == 0 || !is_open_elsewhere(a))
        charge_give(a->dev, a->charged_mib);
    destroy_record(a);
}

void memory_free_all(CUcontext ctx)
{
    while (ctx->allocations != NULL)
        memory_free(ctx->allocations);
}

struct allocation *memory_find(CUdeviceptr at)
{
    void *what = arena_get(at);
    if (what == NULL)
        return NULL;
    if (slab_is_slab(what))
        return slab_find(what, at);
    struct allocation *a = what;
    return at < a->start + a->size ? a : NULL;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    CUcontext ctx;
    struct allocation *a;
    TRY(context_require(&ctx));
    if (out == NULL || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(capture_check_safe());
    driver_lock();
    CUresult result = memory_allocate(ctx, KIND_PLAIN, size, &a);
    if (result == CUDA_SUCCESS)
        *out = a->start;
    driver_unlock();
    return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    if (pitch == NULL || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t row, bytes;
    if (__builtin_add_overflow(width, PITCH_BYTES - 1, &row))
        return CUDA_ERROR_OUT_OF_MEMORY;
    row -= row % PITCH_BYTES;
    if (__builtin_mul_overflow(row, height, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(cuMemAlloc_v2(out, bytes));
    *pitch = row;
    return CUDA_SUCCESS;
}

/* The allocation that cuMemFree may free by this address; virtual, shared and array memory have calls of their own. */
static struct allocation *find_to_free(CUdeviceptr at)
{
    struct allocation *a = memory_find(at);
    if (a == NULL || a->freed || a->start != at || a->kind == KIND_VIRTUAL || a->kind == KIND_IPC ||
        a->kind == KIND_ARRAY)
        return NULL;
    return a;
}

CUresult cuMemFree_v2(CUdeviceptr at)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (at == 0)
        return CUDA_SUCCESS;
    driver_lock();
    bool valid = find_to_free(at) != NULL;
    driver_unlock();
    if (!valid)
        return CUDA_ERROR_INVALID_VALUE;
    /* As in CUDA, freeing waits for what still runs. */
    timeline_wait(&driver.m, ctx->dev->gpu, driver.slot, timeline_end(&driver.m, ctx->dev->gpu, driver.slot));
    driver_lock();
    struct allocation *a = find_to_free(at);
    memory_free(a);
    ordered_free_collect();
    driver_unlock();
    return a != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    CUcontext ctx;
    uint64_t available, all;
    TRY(context_require(&ctx));
    slots_sweep(&driver.m, SWEEP_PAUSE_NS);
    driver_lock();
    ordered_free_collect();
    driver_unlock();
    charge_available(ctx->dev, &available, &all);
    if (free_bytes != NULL)
        *free_bytes = available;
    if (total != NULL)
        *total = all;
    return CUDA_SUCCESS;
}

/* The form from before GPUs had more than 4 GiB. */
CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
    size_t available, all;
    TRY(cuMemGetInfo_v2(&available, &all));
    if (free_bytes != NULL)
        *free_bytes = available > UINT32_MAX ? UINT32_MAX : (unsigned int)available;
    if (total != NULL)
        *total = all > UINT32_MAX ? UINT32_MAX : (unsigned int)all;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *size, CUdeviceptr at)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    driver_lock();
    struct allocation *a = memory_find(at);
    if (a != NULL && start != NULL)
        *start = a->start;
    if (a != NULL && size != NULL)
        *size = a->size;
    driver_unlock();
    return a != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
