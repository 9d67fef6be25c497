/* Contexts: each takes the card's context memory, and takes down with it all that was allocated in it. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define STACK_DEPTH 64
#define CONTEXT_MAGIC 0x53494d43u

static __thread struct {
    uint32_t generation, depth;
    CUcontext items[STACK_DEPTH];
} stack;

static void settle_stack(void) {
    if (stack.generation == driver.generation) return;
    stack.depth = 0;
    stack.generation = driver.generation;
}

CUcontext context_current(void) {
    settle_stack();
    return stack.depth > 0 ? stack.items[stack.depth - 1] : NULL;
}

CUresult context_needed(CUcontext *ctx) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (driver.mps != 0 && mps_check() != CUDA_SUCCESS) return mps_check();
    *ctx = context_current();
    if (*ctx == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    return (*ctx)->magic == CONTEXT_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

bool context_known(CUcontext ctx) {
    for (CUcontext c = driver.contexts; c != NULL; c = c->next)
        if (c == ctx) return true;
    return false;
}

/* Whether the compute mode keeps this process off the GPU: it lets nobody on it, or one process, and clients of MPS,
 * whose server is that process. */
static bool kept_off(const device *dev) {
    uint32_t mode = __atomic_load_n(&device_record(dev)->compute_mode, __ATOMIC_SEQ_CST);
    if (mode != 3 || lane_of(&driver.m, dev->gpu, driver.slot)) return mode == 2;
    slots_sweep(&driver.m, 0);
    for (uint32_t slot = 0; slot < machine_slots_used(&driver.m); slot++) {
        simgpu_cell *cell = machine_cell(&driver.m, dev->gpu, slot);
        bool there = slot != driver.slot && slots_pid(&driver.m, slot) != 0 && !slots_dead(&driver.m, slot);
        if (there && __atomic_load_n(&cell->contexts, __ATOMIC_SEQ_CST) != 0) return true;
    }
    return false;
}

/* With the lock held. */
static CUresult make(CUcontext *out, int ordinal, unsigned int flags) {
    device *dev = &driver.devices[ordinal];
    simgpu_gpu *record = device_record(dev);
    if (__atomic_load_n(&record->lost, __ATOMIC_SEQ_CST)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (driver.mps != 0 && mps_check() != CUDA_SUCCESS) return mps_check();
    if (kept_off(dev)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    CUcontext ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL || !charge_take(dev, record->context_mib)) {
        free(ctx);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    driver_take_time(driver.m.head->context_us);
    __atomic_add_fetch(&record->contexts_made, 1, __ATOMIC_SEQ_CST);
    ctx->magic = CONTEXT_MAGIC;
    ctx->ordinal = ordinal;
    ctx->dev = dev;
    ctx->flags = flags;
    ctx->id = ++driver.next_id;
    ctx->limits[0] = 1024;
    ctx->limits[1] = 1 << 20;
    ctx->limits[2] = 8 << 20;
    ctx->limits[3] = 2;
    ctx->limits[4] = 2048;
    ctx->limits[5] = 64;
    ctx->legacy = (struct CUstream_st){.ctx = ctx, .id = ++driver.next_id};
    ctx->next = driver.contexts;
    driver.contexts = ctx;
    __atomic_add_fetch(&device_cell(dev)->contexts, 1, __ATOMIC_SEQ_CST);
    *out = ctx;
    return CUDA_SUCCESS;
}

/* With the lock held. The shell of a context is kept, so that a late use of it is an error and not a crash. */
static void destroy(CUcontext ctx) {
    for (CUcontext *at = &driver.contexts; *at != NULL; at = &(*at)->next)
        if (*at == ctx) {
            *at = ctx->next;
            break;
        }
    memory_free_all(ctx);
    pool_trim_all(ctx->dev);
    ctx->dev->graph_end = 0;
    graph_memory_trim(ctx->dev);
    stream_destroy_all(ctx);
    charge_give(ctx->dev, ctx->limits_mib);
    charge_give(ctx->dev, device_record(ctx->dev)->context_mib);
    __atomic_sub_fetch(&device_cell(ctx->dev)->contexts, 1, __ATOMIC_SEQ_CST);
    ctx->magic = 0;
    settle_stack();
    if (stack.depth > 0 && stack.items[stack.depth - 1] == ctx) stack.depth--;
}

static CUresult push(CUcontext ctx) {
    settle_stack();
    if (stack.depth == STACK_DEPTH) return CUDA_ERROR_INVALID_VALUE;
    stack.items[stack.depth++] = ctx;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice ordinal) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (driver_device(ordinal) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    CUresult result = make(out, ordinal, flags);
    driver_unlock();
    return result == CUDA_SUCCESS ? push(*out) : result;
}

SIM_API CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity, int count, unsigned int flags,
                                CUdevice ordinal) {
    (void)affinity;
    return count != 0 ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(out, flags, ordinal);
}

SIM_API CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice ordinal) {
    if (params != NULL && (params->numExecAffinityParams != 0 || params->cigParams != NULL))
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuCtxCreate_v2(out, flags, ordinal);
}

SIM_API CUresult cuCtxDestroy_v2(CUcontext ctx) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    driver_lock();
    CUresult result = context_known(ctx) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && ctx->dev->primary == ctx) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS) destroy(ctx);
    driver_unlock();
    return result;
}

SIM_API CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    return ctx == NULL ? CUDA_ERROR_INVALID_CONTEXT : push(ctx);
}

SIM_API CUresult cuCtxPopCurrent_v2(CUcontext *out) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    CUcontext ctx = context_current();
    if (ctx == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    stack.depth--;
    if (out != NULL) *out = ctx;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetCurrent(CUcontext ctx) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    settle_stack();
    if (stack.depth > 0) stack.depth--;
    return ctx != NULL ? push(ctx) : CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetCurrent(CUcontext *out) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL) return CUDA_ERROR_INVALID_VALUE;
    *out = context_current();
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice ordinal) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    device *dev = driver_device(ordinal);
    if (dev == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (out == NULL) return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    CUresult result = dev->primary != NULL ? CUDA_SUCCESS : make(&dev->primary, ordinal, dev->primary_flags);
    if (result == CUDA_SUCCESS) {
        dev->primary_refs++;
        *out = dev->primary;
    }
    driver_unlock();
    return result;
}

/* `all`: whatever the count says, as a reset does. */
static CUresult release_primary(int ordinal, bool all) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    device *dev = driver_device(ordinal);
    if (dev == NULL) return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    CUresult result = dev->primary != NULL || all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (dev->primary != NULL && (all || --dev->primary_refs == 0)) {
        destroy(dev->primary);
        dev->primary = NULL;
        dev->primary_refs = 0;
    }
    driver_unlock();
    return result;
}

SIM_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) { return release_primary(ordinal, false); }

SIM_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) { return release_primary(ordinal, true); }

SIM_API CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    device *dev = driver_device(ordinal);
    if (dev == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (flags != NULL) *flags = dev->primary_flags;
    if (active != NULL) *active = dev->primary != NULL;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    device *dev = driver_device(ordinal);
    if (dev == NULL) return CUDA_ERROR_INVALID_DEVICE;
    dev->primary_flags = flags;
    return CUDA_SUCCESS;
}
