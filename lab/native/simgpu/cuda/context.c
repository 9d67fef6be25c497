#include "cuda/context.h"

#include "core/lane.h"
#include "core/slots.h"
#include "core/timeline.h"
#include "cuda/callback.h"
#include "cuda/charge.h"
#include "cuda/driver.h"
#include "cuda/graph_memory.h"
#include "cuda/memory.h"
#include "cuda/mps.h"
#include "cuda/pool.h"

#include <stdatomic.h>
#include <stdlib.h>

#define CONTEXT_MAGIC 0x53494d43

enum { COMPUTE_MODE_PROHIBITED = 2, COMPUTE_MODE_EXCLUSIVE_PROCESS = 3 };

CUresult context_require(CUcontext *ctx)
{
    TRY(driver_check_ready());
    TRY(mps_check());
    *ctx = context_current();
    if (*ctx == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    return (*ctx)->magic == CONTEXT_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

bool context_exists(CUcontext ctx)
{
    for (CUcontext c = driver.contexts; c != NULL; c = c->next)
        if (c == ctx)
            return true;
    return false;
}

void context_wait(CUcontext ctx)
{
    timeline_wait(&driver.m, ctx->dev->gpu, driver.slot, timeline_end(&driver.m, ctx->dev->gpu, driver.slot));
    callback_wait_all();
}

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
    if (charge_take(dev, device_record(dev)->context_mib))
        return true;
    atomic_fetch_sub(&device_cell(dev)->contexts, 1);
    return false;
}

CUresult context_create(CUcontext *out, int ordinal, unsigned int flags)
{
    return context_create_in(NULL, out, ordinal, flags);
}

CUresult context_create_in(CUcontext place, CUcontext *out, int ordinal, unsigned int flags)
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
    context_limits_begin(ctx);
    ctx->legacy = (struct CUstream_st){.ctx = ctx, .id = ++driver.next_id};
    driver.contexts = ctx;
    *out = ctx;
    return CUDA_SUCCESS;
}

void context_destroy(CUcontext ctx)
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
    CUresult result = context_create(out, ordinal, flags);
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
        context_destroy(ctx);
    driver_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
