#include "memory/pools.h"

#include "cuda/capture_mode.h"
#include "cuda/context_table.h"
#include "cuda/devices.h"
#include "cuda/hooks.h"
#include "memory/graph_records.h"
#include "memory/lending.h"
#include "memory/reservation.h"
#include "memory/reserve.h"
#include "memory/spill.h"
#include "shared/assertion.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct pool {
    struct pool *next;
    CUmemoryPool handle; /* NULL: destroyed while blocks of it were in use; removed with the last of them */
    int device;          /* -1: not in device memory */
    bool managed;        /* its allocations count one by one, because such a pool's figures are not about the GPU */
    uint64_t charged;
    uint64_t used; /* requested and not freed, as the driver rounds it */
};

/* The driver gives a pool's memory to programs in such units. */
enum { UNIT = 512 };

enum { MIN_STEP = 2 << 20 };

/* Recursive, because before a refusal `reserve` has the pools refreshed by the thread that holds it. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
/* These, and the pools, by the lock. The driver reserves memory for a pool in steps, usually of 32 MiB. If a pool grows
 * by less, steps are smaller. */
static uint64_t step = UINT64_C(32) << 20;
static struct pool *pools;

/* A pool has more than is in use, by a free or because it grew by a whole step. The driver may give that back. */
static atomic_bool may_shrink;

void pools_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    pools = NULL;
    may_shrink = false;
}

static struct pool *find_pool(CUmemoryPool handle)
{
    struct pool *pool = pools;
    while (pool != NULL && pool->handle != handle)
        pool = pool->next;
    return pool;
}

static struct pool *add_pool(CUmemoryPool handle, int device)
{
    struct pool *pool = find_pool(handle);
    if (pool == NULL && (pool = calloc(1, sizeof *pool)) != NULL) {
        *pool = (struct pool){.next = pools, .handle = handle, .device = device};
        pools = pool;
    }
    return pool;
}

/* A pool that was not created through us: a device's default pool, or one that is not in device memory. The latter is
 * not recorded: the handle may be invalid, and may belong to a pool in device memory later. */
static struct pool *find_or_add(CUmemoryPool handle)
{
    static struct pool elsewhere = {.device = -1};
    struct pool *pool = find_pool(handle);
    CUmemoryPool own;
    for (int ordinal = 0; pool == NULL && device_entry(ordinal) >= 0; ordinal++)
        if (REAL(cuDeviceGetDefaultMemPool)(&own, ordinal) == CUDA_SUCCESS && own == handle)
            return add_pool(handle, device_entry(ordinal));
    return pool != NULL ? pool : &elsewhere;
}

/* A driver that does not say is assumed to hold `otherwise`. */
static uint64_t read_attribute(const struct pool *pool, CUmemPool_attribute which, uint64_t otherwise)
{
    cuuint64_t value = 0;
    CUstreamCaptureMode mode = neutral_begin();
    CUresult result = REAL(cuMemPoolGetAttribute)(pool->handle, which, &value);
    neutral_end(mode);
    return result == CUDA_SUCCESS ? value : otherwise;
}

static void trim_pool(const struct pool *pool)
{
    CUstreamCaptureMode mode = neutral_begin();
    REAL(cuMemPoolTrimTo)(pool->handle, 0);
    neutral_end(mode);
}

static void refresh_pool(struct pool *pool)
{
    ASSERT(pool->device < LAMINA_MAX_DEVICES);
    if (pool->handle == NULL || pool->device < 0 || pool->managed)
        return;
    /* The driver holds it already, so no limit is checked: the next allocation is refused. */
    uint64_t held = read_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, pool->charged);
    if (held > pool->charged)
        reserve_beyond_limit(pool->device, LAMINA_POOL, held - pool->charged);
    else if (held < pool->charged)
        unreserve(pool->device, LAMINA_POOL, pool->charged - held);
    pool->charged = held;
}

/* The driver gives memory back only once the program waits for the GPU, so one refresh may be too early. */
static bool can_shrink(const struct pool *pool)
{
    if (pool->handle == NULL || pool->charged < MIN_STEP)
        return false;
    return read_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 0) <= pool->charged - MIN_STEP;
}

void pools_refresh(void)
{
    pthread_mutex_lock(&lock);
    may_shrink = false;
    for (struct pool *pool = pools; pool != NULL; pool = pool->next) {
        refresh_pool(pool);
        if (can_shrink(pool))
            may_shrink = true;
    }
    pthread_mutex_unlock(&lock);
}

void pools_refresh_if_shrunk(void)
{
    /* Relaxed: only a hint; what is refreshed is read under the lock. */
    if (atomic_load_explicit(&may_shrink, memory_order_relaxed))
        pools_refresh();
}

static void remove_pool(struct pool *pool)
{
    ASSERT(pool->handle == NULL && pool->used == 0);
    struct pool **link = &pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    unreserve(pool->device, LAMINA_POOL, pool->charged);
    free(pool);
}

void pools_note_free(const struct block *block)
{
    pthread_mutex_lock(&lock);
    struct pool *pool = pools;
    while (pool != NULL && pool != block->object)
        pool = pool->next;
    if (pool != NULL) {
        ASSERT(pool->device >= 0);
        pool->used -= block->bytes < pool->used ? block->bytes : pool->used;
        may_shrink = true;
        if (pool->handle == NULL && pool->used == 0)
            remove_pool(pool);
    }
    pthread_mutex_unlock(&lock);
}

/* One of the four calls that allocate from a pool. */
struct request {
    CUresult (*make)(const struct request *request, CUdeviceptr *pointer);
    __typeof__(cuStreamGetCaptureInfo_v2) *capture_info;
    CUresult (*synchronize)(CUstream stream);
    CUmemoryPool pool;
    int device; /* whose current pool it is; -1: the program named the pool */
    CUstream stream;
    uint64_t bytes;
};

static uint64_t in_units(uint64_t bytes)
{
    return bytes > UINT64_MAX - UNIT ? UINT64_MAX : (bytes + UNIT - 1) / UNIT * UNIT;
}

static uint64_t in_steps(uint64_t bytes)
{
    return bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

/* Reserves the memory by which the pool may grow: nothing if it seems to have enough free, otherwise what is missing,
 * in whole steps. Our own count of what is free is for speed: when it is too low, the driver is asked. Before a refusal
 * the pool is trimmed, as the driver itself would do.
 *
 * Example: the pool has reserved 32 MiB, all of it charged, and 20 MiB are used. A request for 8 MiB reserves nothing.
 * A request for 20 MiB lacks 8 MiB, so one step of 32 MiB is reserved. If the driver then reports 64 MiB, they are all
 * accounted for; if it reports 40 MiB, 24 MiB are given back and the step becomes 8 MiB. */
static CUresult reserve_growth(struct pool *pool, uint64_t bytes, uint64_t *reserved)
{
    *reserved = 0;
    if (pool->used <= pool->charged && bytes <= pool->charged - pool->used)
        return CUDA_SUCCESS;
    refresh_pool(pool);
    uint64_t used = read_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, pool->charged);
    uint64_t spare = pool->charged > used ? pool->charged - used : 0;
    *reserved = bytes > spare ? in_steps(bytes - spare) : 0;
    if (reserve_quietly(pool->device, LAMINA_POOL, *reserved) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    trim_pool(pool);
    pools_refresh();
    *reserved = in_steps(bytes); /* all of it: after the trim nothing is spare */
    return reserve(pool->device, LAMINA_POOL, *reserved);
}

/* False when there is no memory to record the block. */
static bool record_block(struct pool *pool, uint64_t bytes, CUdeviceptr pointer)
{
    struct block replaced, block = {.key = pointer,
                                    .bytes = bytes,
                                    .object = pool,
                                    .class = BLOCK_POINTER,
                                    .kind = LAMINA_POOL,
                                    .device = (uint8_t)pool->device};
    pool->used += bytes;
    if (blocks_put(&block, &replaced))
        return true;
    pool->used -= bytes;
    return false;
}

/* The pool can give the memory back only once the stream has freed the block. */
static void undo_allocation(struct pool *pool, const struct request *request, CUdeviceptr pointer)
{
    CUstreamCaptureMode mode = neutral_begin();
    REAL(cuMemFreeAsync)(pointer, request->stream);
    request->synchronize(request->stream);
    neutral_end(mode);
    trim_pool(pool);
    refresh_pool(pool);
}

/* By how much the pool has grown is now known. It is either within the limit or undone. */
static CUresult settle_growth(struct pool *pool, const struct request *request, uint64_t reserved, CUdeviceptr pointer)
{
    ASSERT(pool->device >= 0 && !pool->managed);
    ASSERT(step >= MIN_STEP);
    /* Without a figure, it is what was reserved. */
    uint64_t held = read_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, pool->charged + reserved);
    uint64_t grown = held > pool->charged ? held - pool->charged : 0;
    CUresult result = reserve_adjust(pool->device, LAMINA_POOL, reserved, grown);
    while (step > MIN_STEP && grown % step != 0)
        step /= 2; /* this driver's steps are smaller */
    if (result == CUDA_SUCCESS) {
        pool->charged += grown;
        if (grown > 0)
            may_shrink = true;
        if (record_block(pool, in_units(request->bytes), pointer))
            return CUDA_SUCCESS;
    } else
        unreserve(pool->device, LAMINA_POOL, reserved); /* it grew by more than that, beyond the limit */
    undo_allocation(pool, request, pointer);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Nothing is allocated before the graph runs. Its record says what that takes, and view/graph_launch.c reserves it. */
static CUresult allocate_captured(const struct request *request, CUgraph graph, CUdeviceptr *pointer)
{
    CUcontext context;
    int device = context_device(&context);
    if (device >= 0 && !graph_records_add(graph))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = request->make(request, pointer);
    if (result == CUDA_SUCCESS)
        graph_records_note_allocation(graph, device, whole_blocks(request->bytes), *pointer);
    return result;
}

/* `reserved`: by how much the pool may grow now. Beyond the physical share, the block becomes managed memory instead,
 * which the driver can move to the host. */
static CUresult make_or_spill(struct pool *pool, const struct request *request, uint64_t reserved, CUdeviceptr *pointer)
{
    CUcontext context;
    bool due = reserved > 0 && spill_needed(pool->device); /* not for what the pool has already */
    uint64_t since = 0;
    CUresult result;
    do
        result = due ? CUDA_ERROR_OUT_OF_MEMORY : request->make(request, pointer);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && !due && lending_wait(pool->device, &since));
    if (result == CUDA_SUCCESS)
        return settle_growth(pool, request, reserved, *pointer);
    unreserve(pool->device, LAMINA_POOL, reserved);
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !spill_possible(pool->device))
        return result;
    /* It is no block of the pool, so it is reserved and counted like any other. */
    struct reservation reservation;
    context_device(&context);
    result = reservation_begin(&reservation, context, pool->device, LAMINA_DATA, request->bytes);
    return result == CUDA_SUCCESS ? reservation_spill(&reservation, pointer, request->bytes) : result;
}

static CUresult allocate_managed(const struct pool *pool, const struct request *request, CUdeviceptr *pointer)
{
    struct reservation reservation;
    CUresult result = reservation_begin(&reservation, NULL, pool->device, LAMINA_MANAGED, request->bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = request->make(request, pointer);
    return result == CUDA_SUCCESS ? reservation_commit(&reservation, *pointer)
                                  : reservation_cancel(&reservation, result);
}

static CUresult allocate_from_pool(const struct request *request, CUdeviceptr *pointer)
{
    if (pointer == NULL || request->bytes == 0)
        return request->make(request, pointer); /* for the driver's own answer */
    CUgraph graph = captured_graph(request->capture_info, request->stream);
    if (graph != NULL)
        return allocate_captured(request, graph, pointer);
    pthread_mutex_lock(&lock);
    struct pool *pool = request->device >= 0 ? add_pool(request->pool, request->device) : find_or_add(request->pool);
    uint64_t reserved;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY; /* there is none to record the pool */
    if (pool != NULL && pool->device < 0)
        result = request->make(request, pointer); /* not in device memory, or no pool: that is for the driver to say */
    else if (pool != NULL && pool->managed)
        result = allocate_managed(pool, request, pointer);
    else if (pool != NULL && (result = reserve_growth(pool, in_units(request->bytes), &reserved)) == CUDA_SUCCESS)
        result = make_or_spill(pool, request, reserved, pointer);
    pthread_mutex_unlock(&lock);
    return result;
}

/* Allocates from the current device's pool. Without a context, the driver gives its own answer. */
static CUresult allocate_from_current(struct request *request, CUdeviceptr *pointer)
{
    CUcontext context;
    request->device = context_device(&context);
    if (request->device < 0 ||
        REAL(cuDeviceGetMemPool)(&request->pool, device_ordinal(request->device)) != CUDA_SUCCESS)
        return request->make(request, pointer);
    return allocate_from_pool(request, pointer);
}

static CUresult make_default(const struct request *r, CUdeviceptr *pointer)
{
    return REAL(cuMemAllocAsync)(pointer, r->bytes, r->stream);
}

static CUresult make_default_ptsz(const struct request *r, CUdeviceptr *pointer)
{
    return REAL(cuMemAllocAsync_ptsz)(pointer, r->bytes, r->stream);
}

static CUresult make_from(const struct request *r, CUdeviceptr *pointer)
{
    return REAL(cuMemAllocFromPoolAsync)(pointer, r->bytes, r->pool, r->stream);
}

static CUresult make_from_ptsz(const struct request *r, CUdeviceptr *pointer)
{
    return REAL(cuMemAllocFromPoolAsync_ptsz)(pointer, r->bytes, r->pool, r->stream);
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    struct request request = {
        make_default, REAL(cuStreamGetCaptureInfo_v2), REAL(cuStreamSynchronize), NULL, -1, stream, bytes};
    return allocate_from_current(&request, pointer);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    struct request request = {make_default_ptsz,
                              REAL(cuStreamGetCaptureInfo_v2_ptsz),
                              REAL(cuStreamSynchronize_ptsz),
                              NULL,
                              -1,
                              stream,
                              bytes};
    return allocate_from_current(&request, pointer);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    const struct request request = {
        make_from, REAL(cuStreamGetCaptureInfo_v2), REAL(cuStreamSynchronize), pool, -1, stream, bytes};
    return pool == NULL ? make_from(&request, pointer) : allocate_from_pool(&request, pointer);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    const struct request request = {
        make_from_ptsz, REAL(cuStreamGetCaptureInfo_v2_ptsz), REAL(cuStreamSynchronize_ptsz), pool, -1, stream, bytes};
    return pool == NULL ? make_from_ptsz(&request, pointer) : allocate_from_pool(&request, pointer);
}

/* Managed memory may be on any GPU, whatever its location says, so it counts on the one that the program works with. */
static int device_of_pool(const CUmemLocation *location, CUmemAllocationType type)
{
    CUcontext context;
    int device = device_of_location(location);
    if (device >= 0 || type != CU_MEM_ALLOCATION_TYPE_MANAGED)
        return device;
    device = context_device(&context);
    return device >= 0 ? device : device_entry(0);
}

/* False when there is no memory to record the pool. */
static bool record_pool(CUmemoryPool handle, const CUmemLocation *location, CUmemAllocationType type)
{
    int device = device_of_pool(location, type);
    if (device < 0)
        return true;
    pthread_mutex_lock(&lock);
    struct pool *pool = add_pool(handle, device);
    if (pool != NULL)
        pool->managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    pthread_mutex_unlock(&lock);
    return pool != NULL;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    CUresult result = REAL(cuMemPoolCreate)(pool, props);
    if (result != CUDA_SUCCESS || record_pool(*pool, &props->location, props->allocType))
        return result;
    REAL(cuMemPoolDestroy)(*pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = REAL(cuMemGetDefaultMemPool)(pool, location, type);
    return result != CUDA_SUCCESS || record_pool(*pool, location, type) ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = REAL(cuMemGetMemPool)(pool, location, type);
    return result != CUDA_SUCCESS || record_pool(*pool, location, type) ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemPoolDestroy)(handle);
    struct pool *pool = result == CUDA_SUCCESS && handle != NULL ? find_pool(handle) : NULL;
    if (pool != NULL) {
        pool->handle = NULL; /* the driver may give it to another pool at once */
        if (pool->used == 0)
            remove_pool(pool);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    CUresult result = REAL(cuMemPoolTrimTo)(pool, keep);
    pools_refresh();
    return result;
}
