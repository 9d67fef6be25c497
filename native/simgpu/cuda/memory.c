/* Plain device memory: cuMemAlloc and its kin, and how much there is. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_BYTES (1 * MIB)
#define SWEEP_PAUSE_NS 20000000u
#define PITCH_BYTES 512u

uint32_t memory_blocks_mib(size_t size) {
    return size > (size_t)INT32_MAX * MIB ? INT32_MAX : (uint32_t)((size + PAGE_BYTES - 1) / PAGE_BYTES * (PAGE_BYTES / MIB));
}

void memory_link(CUcontext ctx, allocation *a) {
    a->ctx = ctx;
    a->previous = NULL;
    a->next = ctx->allocations;
    if (a->next != NULL) a->next->previous = a;
    ctx->allocations = a;
}

static void unlink_from_context(allocation *a) {
    if (a->ctx == NULL) return;
    if (a->previous != NULL) a->previous->next = a->next;
    else a->ctx->allocations = a->next;
    if (a->next != NULL) a->next->previous = a->previous;
}

/* Addresses and a record, without any charge. */
static allocation *place(CUcontext ctx, allocation_kind kind, size_t size) {
    allocation *a = calloc(1, sizeof *a);
    CUdeviceptr start = a != NULL ? arena_reserve(size) : 0;
    if (start == 0) {
        free(a);
        return NULL;
    }
    *a = (allocation){.start = start, .size = size, .kind = kind, .dev = ctx->dev};
    arena_set(start, size, a);
    return a;
}

static CUresult charge(allocation *a) {
    uint32_t mib = memory_blocks_mib(a->size);
    if (!charge_take(a->dev, mib)) return CUDA_ERROR_OUT_OF_MEMORY;
    a->charged_mib = mib;
    return CUDA_SUCCESS;
}

static void unplace(allocation *a) {
    if (a->touched) arena_discard(a->start, a->size);
    arena_set(a->start, a->size, NULL);
    arena_release(a->start, a->size);
    free(a);
}

CUresult memory_new(CUcontext ctx, allocation_kind kind, size_t size, allocation **out) {
    if (kind == KIND_PLAIN && size <= SMALL_BYTES) {
        CUresult result = slab_allocate(ctx, size, out);
        if (result == CUDA_SUCCESS) memory_link(ctx, *out);
        return result;
    }
    /* Far beyond any device; and sums of such sizes must not overflow. */
    if (size > 1ull << 42) return CUDA_ERROR_OUT_OF_MEMORY;
    allocation *a = place(ctx, kind, size);
    if (a == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    bool charged_elsewhere = kind == KIND_MANAGED || kind == KIND_POOL || kind == KIND_IPC;
    CUresult result = charged_elsewhere ? CUDA_SUCCESS : charge(a);
    if (result != CUDA_SUCCESS) {
        unplace(a);
        return result;
    }
    memory_link(ctx, a);
    *out = a;
    return CUDA_SUCCESS;
}

void memory_free(allocation *a) {
    if (a == NULL) return; /* went with its context */
    unlink_from_context(a);
    if (a->kind == KIND_ARRAY) *(allocation **)a->extra = NULL;
    if (a->kind == KIND_GRAPH) {
        graph_memory_free(a);
        return;
    }
    if (a->shared_block) {
        slab_free(a);
        return;
    }
    if (a->kind == KIND_MANAGED) managed_forget(a);
    if (a->kind == KIND_POOL) pool_free(a);
    if (a->kind == KIND_IPC) ipc_close(a);
    if (a->exported == 0 || !ipc_stays(a)) charge_give(a->dev, a->charged_mib);
    unplace(a);
}

void memory_free_all(CUcontext ctx) {
    while (ctx->allocations != NULL) memory_free(ctx->allocations);
}

allocation *memory_find(CUdeviceptr at) {
    void *what = arena_get(at);
    if (what == NULL) return NULL;
    if (slab_owns(what)) return slab_find(what, at);
    allocation *a = what;
    return at < a->start + a->size ? a : NULL;
}

SIM_API CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (out == NULL || size == 0) return CUDA_ERROR_INVALID_VALUE;
    allocation *a;
    driver_lock();
    result = memory_new(ctx, KIND_PLAIN, size, &a);
    if (result == CUDA_SUCCESS) *out = a->start;
    driver_unlock();
    return result;
}

SIM_API CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned int element) {
    if (pitch == NULL || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t row, bytes;
    if (__builtin_add_overflow(width, PITCH_BYTES - 1, &row)) return CUDA_ERROR_OUT_OF_MEMORY;
    row -= row % PITCH_BYTES;
    if (__builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = cuMemAlloc_v2(out, bytes);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
}

SIM_API CUresult cuMemFree_v2(CUdeviceptr at) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS || at == 0) return result;
    driver_lock();
    allocation *a = memory_find(at);
    if (a == NULL || a->start != at || a->kind == KIND_VIRTUAL || a->kind == KIND_IPC || a->kind == KIND_ARRAY)
        result = CUDA_ERROR_INVALID_VALUE;
    driver_unlock();
    if (result != CUDA_SUCCESS) return result;
    /* As in CUDA, freeing waits for what still runs. */
    timeline_wait(&driver.m, ctx->dev->gpu, driver.slot, timeline_end(&driver.m, ctx->dev->gpu, driver.slot));
    driver_lock();
    a = memory_find(at);
    if (a != NULL) memory_free(a);
    driver_unlock();
    return a != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    slots_sweep(&driver.m, SWEEP_PAUSE_NS);
    uint64_t rest, all;
    charge_rest(ctx->dev, &rest, &all);
    if (free_bytes != NULL) *free_bytes = rest;
    if (total != NULL) *total = all;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *size, CUdeviceptr at) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    driver_lock();
    allocation *a = memory_find(at);
    if (a == NULL) result = CUDA_ERROR_NOT_FOUND;
    else {
        if (start != NULL) *start = a->start;
        if (size != NULL) *size = a->size;
    }
    driver_unlock();
    return result;
}
