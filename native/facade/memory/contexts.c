#include "memory/contexts.h"

#include "cuda/context_table.h"
#include "cuda/devices.h"
#include "cuda/hooks.h"
#include "memory/agent_figures.h"
#include "memory/blocks.h"
#include "memory/context_cost.h"
#include "memory/graph_memory.h"
#include "memory/lending.h"
#include "memory/ordered_frees.h"
#include "memory/pools.h"
#include "memory/release.h"
#include "memory/reserve.h"
#include "shared/assertion.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { CORRECTED_EVERY_S = 1 };

/* Held while contexts are made, destroyed or adopted: one at a time, so that what the driver's figure grows by
 * meanwhile is that context's. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static time_t corrected_at; /* by the lock */

static _Atomic bool guesses; /* there may be a context whose charge is a guess */

void contexts_after_fork(void)
{
    making = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    guesses = false;
}

/* The driver has destroyed the context and all that was allocated in it. */
static void forget_context(CUcontext handle, int device)
{
    struct context context;
    if (!context_table_remove(handle, device, &context))
        return;
    blocks_drop_context((uint64_t)(uintptr_t)context.handle, release_block);
    ordered_frees_end_context(context.handle);
    unreserve(context.device, LAMINA_CONTEXT, context.bytes);
    /* With it the driver may have given back memory of pools and graphs, too. */
    pools_refresh();
    graph_memory_refresh(context.device);
}

/* A context that was not made through us, perhaps by a library that was there first. The driver has given it its memory
 * already, so it counts even beyond the limit. Returns its device, or -1. */
static int adopt_context(CUcontext handle, int device, bool primary)
{
    struct context context = {.handle = handle, .device = device, .primary = primary}, known;
    if (device < 0)
        return -1;
    if (context_table_find(handle, device, &known))
        return known.device;
    ASSERT(device < LAMINA_MAX_DEVICES);
    context.bytes = context_cost_uncounted(device);
    reserve_beyond_limit(device, LAMINA_CONTEXT, context.bytes);
    context_table_add(&context);
    return device;
}

int contexts_adopt(CUcontext context, int device)
{
    pthread_mutex_lock(&making);
    device = adopt_context(context, device, false);
    pthread_mutex_unlock(&making);
    return device;
}

void contexts_correct_guesses(void)
{
    struct timespec now;
    struct context context;
    if (!guesses || pthread_mutex_trylock(&making) != 0) /* the thread may hold it: a context is charged as well */
        return;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (!context_table_find_guessed(&context))
        guesses = false; /* until the next one is made, allocations need not take the lock */
    else if (now.tv_sec - corrected_at >= CORRECTED_EVERY_S && agent_figures_are_available()) {
        corrected_at = now.tv_sec; /* also when it fails: the agent's figure changes only now and then */
        if (context_cost_correct(context.device, &context.bytes))
            context_table_correct(context.handle, context.bytes);
    }
    pthread_mutex_unlock(&making);
}

/* How a context is made and destroyed. The five calls differ only in their arguments. */
struct maker {
    CUresult (*make)(const struct maker *maker, CUcontext *context);
    void *params;
    int params_count;
    unsigned flags;
    CUdevice ordinal;
    bool primary;
};

static void destroy_context(const struct maker *maker, CUcontext context)
{
    if (maker->primary)
        REAL(cuDevicePrimaryCtxRelease_v2)(maker->ordinal);
    else
        REAL(cuCtxDestroy_v2)(context);
}

/* The cost is reserved first, as it is likely to be, and settled when the driver has made the context. Called with the
 * lock held. */
static CUresult make_charged(const struct maker *maker, int device, CUcontext *context)
{
    uint64_t since = 0;
    struct context_cost cost;
    CUresult result = context_cost_reserve(&cost, device);
    if (result != CUDA_SUCCESS)
        return result;
    do
        result = maker->make(maker, context);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && lending_wait(device, &since)); /* while lent memory comes back */
    if (result != CUDA_SUCCESS) {
        context_cost_cancel(&cost);
        return result;
    }
    struct context made = {.handle = *context, .device = device, .primary = maker->primary};
    result = context_cost_settle(&cost, &made.bytes);
    made.guessed = cost.guessed;
    if (result == CUDA_SUCCESS && made.guessed)
        guesses = true;
    if (result == CUDA_SUCCESS && !context_table_add(&made)) { /* no memory for its entry */
        unreserve(device, LAMINA_CONTEXT, made.bytes);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        /* It takes more than fits. The program sees the same as if the driver had not made it. */
        destroy_context(maker, *context);
        *context = NULL;
    }
    return result;
}

static CUresult make_context(const struct maker *maker, CUcontext *context)
{
    int device = device_entry(maker->ordinal);
    if (context == NULL || device < 0)
        return maker->make(maker, context); /* for the driver's own answer */
    pthread_mutex_lock(&making);
    CUresult result = make_charged(maker, device, context);
    pthread_mutex_unlock(&making);
    return result;
}

static CUresult make_v1(const struct maker *m, CUcontext *context)
{
    return REAL(cuCtxCreate)(context, m->flags, m->ordinal);
}

static CUresult make_v2(const struct maker *m, CUcontext *context)
{
    return REAL(cuCtxCreate_v2)(context, m->flags, m->ordinal);
}

static CUresult make_v3(const struct maker *m, CUcontext *context)
{
    return REAL(cuCtxCreate_v3)(context, m->params, m->params_count, m->flags, m->ordinal);
}

static CUresult make_v4(const struct maker *m, CUcontext *context)
{
    return REAL(cuCtxCreate_v4)(context, m->params, m->flags, m->ordinal);
}

static CUresult make_primary(const struct maker *m, CUcontext *context)
{
    return REAL(cuDevicePrimaryCtxRetain)(context, m->ordinal);
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    return make_context(&(struct maker){.make = make_v1, .flags = flags, .ordinal = device}, context);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    return make_context(&(struct maker){.make = make_v2, .flags = flags, .ordinal = device}, context);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int params_count, unsigned int flags,
                        CUdevice device)
{
    return make_context(&(struct maker){make_v3, params, params_count, flags, device, false}, context);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags, CUdevice device)
{
    return make_context(&(struct maker){make_v4, params, 0, flags, device, false}, context);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal)
{
    const struct maker maker = {.make = make_primary, .ordinal = ordinal, .primary = true};
    int device = device_entry(ordinal), active = 0;
    unsigned flags;
    struct context known;
    if (context == NULL || device < 0)
        return REAL(cuDevicePrimaryCtxRetain)(context, ordinal); /* for the driver's own answer */
    pthread_mutex_lock(&making);
    /* Only the first retain makes it. One that we do not know but is active was made past us: it is adopted. */
    bool known_to_us = context_table_find(NULL, device, &known);
    if (!known_to_us)
        REAL(cuDevicePrimaryCtxGetState)(ordinal, &flags, &active);
    CUresult result = known_to_us || active ? make_primary(&maker, context) : make_charged(&maker, device, context);
    if (active && result == CUDA_SUCCESS)
        adopt_context(*context, device, true);
    pthread_mutex_unlock(&making);
    return result;
}

/* Releasing or resetting a primary context may destroy it. The driver says whether it did. */
static CUresult end_primary(CUresult (*end)(CUdevice), CUdevice ordinal)
{
    int device = device_entry(ordinal), active = 1;
    unsigned flags;
    struct context known;
    pthread_mutex_lock(&making);
    /* Before the driver's call, because what the callbacks end, such as events, is gone with the context. */
    if (device >= 0 && context_table_find(NULL, device, &known))
        context_table_ending(known.handle);
    CUresult result = end(ordinal);
    if (result == CUDA_SUCCESS && device >= 0 &&
        REAL(cuDevicePrimaryCtxGetState)(ordinal, &flags, &active) == CUDA_SUCCESS && !active)
        forget_context(NULL, device);
    pthread_mutex_unlock(&making);
    return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return end_primary(REAL(cuDevicePrimaryCtxRelease), device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return end_primary(REAL(cuDevicePrimaryCtxRelease_v2), device);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return end_primary(REAL(cuDevicePrimaryCtxReset), device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return end_primary(REAL(cuDevicePrimaryCtxReset_v2), device);
}

/* Called with the lock held, which it releases. */
static CUresult finish_destroying(CUresult result, CUcontext context)
{
    if (result == CUDA_SUCCESS && context != NULL)
        forget_context(context, -1);
    pthread_mutex_unlock(&making);
    return result;
}

CUresult cuCtxDestroy(CUcontext context)
{
    pthread_mutex_lock(&making);
    context_table_ending(context);
    return finish_destroying(REAL(cuCtxDestroy)(context), context);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    pthread_mutex_lock(&making);
    context_table_ending(context);
    return finish_destroying(REAL(cuCtxDestroy_v2)(context), context);
}

/* Detaching destroys the context only with its last reference; then the driver no longer knows it. */
CUresult cuCtxDetach(CUcontext context)
{
    unsigned version;
    pthread_mutex_lock(&making);
    context_table_ending(context);
    CUresult result = REAL(cuCtxDetach)(context);
    return finish_destroying(result, REAL(cuCtxGetApiVersion)(context, &version) == CUDA_SUCCESS ? NULL : context);
}
