#include "contexts.h"

#include "blocks.h"
#include "context_cost.h"
#include "devices.h"
#include "gate.h"
#include "graphs.h"
#include "hold.h"
#include "hooks.h"
#include "pools.h"
#include "release.h"
#include "spin.h"

#include <pthread.h>
#include <stdlib.h>

struct context {
    CUcontext handle;
    int device;
    bool primary;
    uint64_t bytes;
};

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* held while contexts are made, destroyed or adopted */
static spin_t table_lock;
static struct context *table;
static size_t count, room;
static atomic_uint epoch = 1; /* grows when a context goes: its handle may come again for another device */

static __thread struct {
    CUcontext handle;
    int device;
    unsigned epoch;
} last __attribute__((tls_model("initial-exec")));

void contexts_forget(void)
{
    making = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    table_lock = 0;
    table = NULL; /* perhaps half-changed by a thread that is not here */
    count = room = 0;
    epoch++;
    figure_forget();
}

static bool remember(const struct context *context)
{
    bool done = false;
    spin_lock(&table_lock);
    if (count == room) {
        size_t more = room ? room * 2 : 16;
        struct context *bigger = realloc(table, more * sizeof *table);
        if (bigger != NULL) {
            table = bigger;
            room = more;
        }
    }
    if (count < room) {
        table[count++] = *context;
        done = true;
    }
    spin_unlock(&table_lock);
    return done;
}

/* A context by its handle, or, with a NULL handle, the primary one of a device. */
static bool find(CUcontext handle, int device, bool removing, struct context *found)
{
    bool there = false;
    spin_lock(&table_lock);
    for (size_t i = 0; i < count && !there; i++) {
        there = handle != NULL ? table[i].handle == handle : table[i].primary && table[i].device == device;
        if (there) {
            *found = table[i];
            if (removing)
                table[i] = table[--count];
        }
    }
    spin_unlock(&table_lock);
    return there;
}

/* The driver has destroyed the context and all that was allocated in it. */
static void forget(CUcontext handle, int device)
{
    struct context context;
    if (!find(handle, device, true, &context))
        return;
    epoch++;
    blocks_drop_context((uint64_t)(uintptr_t)context.handle, release);
    give_back(context.device, LAMINA_CONTEXT, context.bytes);
    pools_refresh();
    graphs_refresh(context.device);
}

/* A context that came about behind our back, for example by graphics interoperation: it is there, so it counts. */
static int adopt(CUcontext handle, int device, bool primary)
{
    struct context context = {.handle = handle, .device = device, .primary = primary}, known;
    if (device < 0)
        return -1;
    if (find(handle, device, false, &known))
        return known.device;
    context.bytes = context_cost_unseen(device);
    hold_anyway(device, LAMINA_CONTEXT, context.bytes);
    remember(&context);
    return device;
}

int context_device(CUcontext *context)
{
    CUcontext current = NULL;
    *context = NULL;
    if (REAL(cuCtxGetCurrent)(&current) != CUDA_SUCCESS || current == NULL)
        return -1;
    *context = current;
    unsigned now = atomic_load_explicit(&epoch, memory_order_acquire);
    if (last.handle == current && last.epoch == now)
        return last.device;
    struct context known;
    int device, ordinal;
    if (find(current, 0, false, &known))
        device = known.device;
    else if (REAL(cuCtxGetDevice)(&ordinal) == CUDA_SUCCESS) {
        pthread_mutex_lock(&making);
        device = adopt(current, device_entry(ordinal), false);
        pthread_mutex_unlock(&making);
    } else
        return -1;
    last.handle = current;
    last.device = device;
    last.epoch = now;
    return device;
}

/* How a context is made and unmade: the five calls differ only in their arguments. */
struct maker {
    CUresult (*make)(const struct maker *maker, CUcontext *context);
    void *params;
    int params_count;
    unsigned flags;
    CUdevice ordinal;
    bool primary;
};

static void unmake(const struct maker *maker, CUcontext context)
{
    if (maker->primary)
        REAL(cuDevicePrimaryCtxRelease_v2)(maker->ordinal);
    else
        REAL(cuCtxDestroy_v2)(context);
}

static CUresult make_charged(const struct maker *maker, int device, CUcontext *context)
{
    struct context_cost cost;
    CUresult result = context_cost_announce(&cost, device);
    if (result != CUDA_SUCCESS)
        return result;
    result = maker->make(maker, context);
    if (result != CUDA_SUCCESS) {
        context_cost_undo(&cost);
        return result;
    }
    struct context made = {.handle = *context, .device = device, .primary = maker->primary};
    result = context_cost_settle(&cost, &made.bytes);
    if (result == CUDA_SUCCESS && !remember(&made)) {
        give_back(device, LAMINA_CONTEXT, made.bytes);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        unmake(maker, *context);
        *context = NULL;
    }
    return result;
}

static CUresult make(const struct maker *maker, CUcontext *context)
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
    return make(&(struct maker){.make = make_v1, .flags = flags, .ordinal = device}, context);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    return make(&(struct maker){.make = make_v2, .flags = flags, .ordinal = device}, context);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int params_count, unsigned int flags,
                        CUdevice device)
{
    return make(&(struct maker){make_v3, params, params_count, flags, device, false}, context);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags, CUdevice device)
{
    return make(&(struct maker){make_v4, params, 0, flags, device, false}, context);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal)
{
    const struct maker maker = {.make = make_primary, .ordinal = ordinal, .primary = true};
    int device = device_entry(ordinal), active = 0;
    unsigned flags;
    struct context known;
    if (context == NULL || device < 0)
        return REAL(cuDevicePrimaryCtxRetain)(context, ordinal);
    pthread_mutex_lock(&making);
    bool ours = find(NULL, device, false, &known);
    if (!ours)
        REAL(cuDevicePrimaryCtxGetState)(ordinal, &flags, &active);
    CUresult result = ours || active ? make_primary(&maker, context) : make_charged(&maker, device, context);
    if (active && result == CUDA_SUCCESS)
        adopt(*context, device, true);
    pthread_mutex_unlock(&making);
    return result;
}

/* Releasing or resetting a primary context may destroy it; the driver says whether it did. */
static CUresult primary_ends(CUresult (*end)(CUdevice), CUdevice ordinal)
{
    int device = device_entry(ordinal), active = 1;
    unsigned flags;
    struct context known;
    pthread_mutex_lock(&making);
    if (device >= 0 && find(NULL, device, false, &known))
        gate_context_ends(known.handle);
    CUresult result = end(ordinal);
    if (result == CUDA_SUCCESS && device >= 0 &&
        REAL(cuDevicePrimaryCtxGetState)(ordinal, &flags, &active) == CUDA_SUCCESS && !active)
        forget(NULL, device);
    pthread_mutex_unlock(&making);
    return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return primary_ends(REAL(cuDevicePrimaryCtxRelease), device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return primary_ends(REAL(cuDevicePrimaryCtxRelease_v2), device);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return primary_ends(REAL(cuDevicePrimaryCtxReset), device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return primary_ends(REAL(cuDevicePrimaryCtxReset_v2), device);
}

static CUresult destroyed(CUresult result, CUcontext context)
{
    if (result == CUDA_SUCCESS && context != NULL)
        forget(context, -1);
    pthread_mutex_unlock(&making);
    return result;
}

CUresult cuCtxDestroy(CUcontext context)
{
    pthread_mutex_lock(&making);
    gate_context_ends(context);
    return destroyed(REAL(cuCtxDestroy)(context), context);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    pthread_mutex_lock(&making);
    gate_context_ends(context);
    return destroyed(REAL(cuCtxDestroy_v2)(context), context);
}

/* Detaching destroys only with the last reference; then the driver does not know the context any more. */
CUresult cuCtxDetach(CUcontext context)
{
    unsigned version;
    pthread_mutex_lock(&making);
    gate_context_ends(context);
    CUresult result = REAL(cuCtxDetach)(context);
    return destroyed(result, REAL(cuCtxGetApiVersion)(context, &version) == CUDA_SUCCESS ? NULL : context);
}
