/* Contexts from their creation to their end, and their limits. The first three limits take device memory beyond what
 * they are when the context is created. Those about work shared with graphics (CIG) can only be read, but for the last.
 * Defaults are those of an H100 with driver 580. */
#include "core/lane.h"
#include "core/slots.h"
#include "cuda/capture.h"
#include "cuda/charge.h"
#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/graph_memory.h"
#include "cuda/memory.h"
#include "cuda/mps.h"
#include "cuda/pool.h"
#include "cuda/reclaim.h"
#include "cuda/stream.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    STACK_SIZE = 0,
    HEAP_SIZE = 2,
    SYNC_DEPTH = 3,
    SETTABLE = 7,
    CIG_ENABLED = 8,
    LIMITS = 10,
    CIG_SINCE = 12050,
    PRINTF_BYTES_PER_SM = 1 << 16,
    RESERVED_SHARED = 1024
};

enum { COMPUTE_MODE_PROHIBITED = 2, COMPUTE_MODE_EXCLUSIVE_PROCESS = 3 };

static bool is_used_by_others(const struct device *dev)
{
    slots_sweep(&driver.m, 0);
    for (uint32_t slot = 0; slot < machine_slots_used(&driver.m); slot++) {
        if (slot == driver.slot || slots_pid(&driver.m, slot) == 0 || slots_is_dead(&driver.m, slot))
            continue;
        if (atomic_load(&machine_cell(&driver.m, dev->gpu, slot)->contexts) != 0)
            return true;
    }
    return false;
}

/* The compute mode may allow no process, or one and clients of MPS, whose server is that process. */
static bool is_refused_by_compute_mode(const struct device *dev)
{
    uint32_t mode = atomic_load(&device_record(dev)->compute_mode);
    if (mode == COMPUTE_MODE_EXCLUSIVE_PROCESS && !lane_exists(&driver.m, dev->gpu, driver.slot))
        return is_used_by_others(dev);
    return mode == COMPUTE_MODE_PROHIBITED;
}

/* It is counted first, since the limit of a client of MPS counts only a part of what each of its contexts takes. */
static bool charge_context(struct device *dev)
{
    atomic_fetch_add(&device_cell(dev)->contexts, 1);
    if (reclaim_take(dev, device_record(dev)->context_mib))
        return true;
    atomic_fetch_sub(&device_cell(dev)->contexts, 1);
    return false;
}

static void begin_limits(CUcontext ctx)
{
    const struct simgpu_gpu *gpu = device_record(ctx->dev);
    const bool hopper = gpu->compute_major >= 9;
    const size_t initial[] = {1024,
                              (size_t)gpu->sm_count * PRINTF_BYTES_PER_SM,
                              8 << 20,
                              2,
                              2048,
                              64,
                              hopper ? gpu->l2_bytes / 16 * 3 : 0,
                              gpu->shared_per_sm - RESERVED_SHARED};
    for (unsigned i = 0; i < sizeof initial / sizeof initial[0]; i++)
        ctx->limits[i] = ctx->initial_limits[i] = initial[i];
}

/* Call this and destroy_context with the lock held. `place` is the structure of a destroyed context, or NULL for a new
 * one: the primary context of a device has the same handle in all its lives. */
static CUresult create_context(CUcontext place, CUcontext *out, int ordinal, unsigned int flags)
{
    struct device *dev = &driver.devices[ordinal];
    struct simgpu_gpu *record = device_record(dev);
    if (atomic_load(&record->lost))
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    TRY(mps_check());
    if (is_refused_by_compute_mode(dev))
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    CUcontext ctx = place != NULL ? place : calloc(1, sizeof *ctx);
    if (ctx == NULL || !charge_context(dev)) {
        if (place == NULL)
            free(ctx);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    driver_delay(driver.m.head->context_us);
    atomic_fetch_add(&record->contexts_made, 1);
    *ctx = (struct CUctx_st){.magic = CONTEXT_MAGIC,
                             .ordinal = ordinal,
                             .dev = dev,
                             .flags = flags,
                             .id = ++driver.next_id,
                             .next = driver.contexts};
    begin_limits(ctx);
    ctx->legacy = (struct CUstream_st){.ctx = ctx, .id = ++driver.next_id};
    driver.contexts = ctx;
    *out = ctx;
    return CUDA_SUCCESS;
}

/* The structure stays, so that a late use is an error and not a crash. */
static void destroy_context(CUcontext ctx)
{
    for (CUcontext *at = &driver.contexts; *at != NULL; at = &(*at)->next)
        if (*at == ctx) {
            *at = ctx->next;
            break;
        }
    memory_free_all(ctx);
    pool_trim_all(ctx->dev);
    ctx->dev->graph_end = 0;
    graph_memory_trim(ctx->dev);
    for (CUstream stream = ctx->streams; stream != NULL; stream = stream->next)
        capture_forget(stream);
    stream_destroy_all(ctx);
    charge_give(ctx->dev, ctx->limits_mib);
    charge_give(ctx->dev, device_record(ctx->dev)->context_mib);
    atomic_fetch_sub(&device_cell(ctx->dev)->contexts, 1);
    ctx->magic = 0;
    context_pop(ctx);
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice ordinal)
{
    TRY(driver_check_ready());
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (device_at(ordinal) == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    CUresult result = create_context(NULL, out, ordinal, flags);
    driver_unlock();
    return result == CUDA_SUCCESS ? context_push(*out) : result;
}

CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity, int count, unsigned int flags, CUdevice ordinal)
{
    (void)affinity;
    return count != 0 ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(out, flags, ordinal);
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice ordinal)
{
    if (params != NULL && (params->numExecAffinityParams != 0 || params->cigParams != NULL))
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuCtxCreate_v2(out, flags, ordinal);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    TRY(driver_check_ready());
    driver_lock();
    bool valid = context_exists(ctx) && ctx->dev->primary != ctx;
    if (valid)
        destroy_context(ctx);
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice ordinal)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    CUresult result = CUDA_SUCCESS;
    if (dev->primary == NULL)
        result = create_context(dev->primary_place, &dev->primary, ordinal, dev->primary_flags);
    if (result == CUDA_SUCCESS) {
        dev->primary_place = dev->primary;
        dev->primary_refs++;
        *out = dev->primary;
    }
    driver_unlock();
    return result;
}

/* `all`: whatever the count is, as a reset does. */
static CUresult release_primary(int ordinal, bool all)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    driver_lock();
    CUresult result = dev->primary != NULL || all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (dev->primary != NULL && (all || --dev->primary_refs == 0)) {
        destroy_context(dev->primary);
        dev->primary = NULL;
        dev->primary_refs = 0;
    }
    driver_unlock();
    return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal)
{
    return release_primary(ordinal, false);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal)
{
    return release_primary(ordinal, true);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (flags != NULL)
        *flags = dev->primary_flags;
    if (active != NULL)
        *active = dev->primary != NULL;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    dev->primary_flags = flags;
    return CUDA_SUCCESS;
}

/* What a limit of this value takes. A stack is one thread's, of all that the GPU can run at once. */
static uint32_t memory_of_limit(CUcontext ctx, CUlimit limit, size_t value)
{
    const struct simgpu_gpu *gpu = device_record(ctx->dev);
    uint64_t threads = limit == STACK_SIZE ? (uint64_t)gpu->sm_count * gpu->threads_per_sm : 1;
    if (limit > HEAP_SIZE || value <= ctx->initial_limits[limit])
        return 0;
    return charge_round_up_mib((value - ctx->initial_limits[limit]) * threads);
}

static CUresult find_limit(CUlimit limit, CUcontext *ctx)
{
    TRY(context_require(ctx));
    bool known = driver.m.head->cuda_version >= CIG_SINCE ? limit < LIMITS : limit < SETTABLE;
    if (limit < 0 || !known)
        return CUDA_ERROR_INVALID_VALUE;
    bool unsupported = limit == SYNC_DEPTH && device_record((*ctx)->dev)->compute_major >= 9;
    return unsupported ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUcontext ctx;
    TRY(find_limit(limit, &ctx));
    if (limit >= SETTABLE && limit <= CIG_ENABLED)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    uint32_t before = memory_of_limit(ctx, limit, ctx->limits[limit]);
    uint32_t after = memory_of_limit(ctx, limit, value);
    CUresult result = CUDA_SUCCESS;
    driver_lock();
    if (after > before && !reclaim_take(ctx->dev, after - before))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (after < before)
        charge_give(ctx->dev, before - after);
    if (result == CUDA_SUCCESS) {
        ctx->limits_mib += after - before;
        ctx->limits[limit] = value;
    }
    driver_unlock();
    return result;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    CUcontext ctx;
    TRY(find_limit(limit, &ctx));
    *value = ctx->limits[limit];
    return CUDA_SUCCESS;
}
