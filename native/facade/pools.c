#include "pools.h"

#include "contexts.h"
#include "devices.h"
#include "graphs.h"
#include "hold.h"
#include "hooks.h"
#include "memory.h"
#include "spill.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct pool {
    struct pool *next;
    CUmemoryPool handle; /* NULL: destroyed while blocks of it were in use; it goes with the last of them */
    int device;          /* -1: not in device memory */
    bool managed;        /* its allocations count one by one: a pool that moves says nothing of the GPU */
    uint64_t charged;
    uint64_t used; /* asked for and not freed, as the driver rounds it */
};

/* In such units the driver gives a pool's memory to programs. */
enum { UNIT = 512 };

/* The driver reserves memory for a pool in steps. 32 MiB is the usual size; how pools grow shows if steps are smaller. */
enum { SMALLEST_STEP = 2 << 20 };
static uint64_t step = UINT64_C(32) << 20;

static struct pool *pools;
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static atomic_bool freed;

void pools_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    pools = NULL;
    freed = false;
}

static struct pool *find(CUmemoryPool handle)
{
    struct pool *pool = pools;
    while (pool != NULL && pool->handle != handle)
        pool = pool->next;
    return pool;
}

static struct pool *add(CUmemoryPool handle, int device)
{
    struct pool *pool = find(handle);
    if (pool == NULL && (pool = calloc(1, sizeof *pool)) != NULL) {
        *pool = (struct pool){.next = pools, .handle = handle, .device = device};
        pools = pool;
    }
    return pool;
}

/* A pool that nobody created through us: a device's own one, or one that is not in device memory. Of the latter nothing
 * is kept: the handle may be wrong, and be that of a pool in device memory one day. */
static struct pool *find_or_add(CUmemoryPool handle)
{
    static struct pool elsewhere = {.device = -1};
    struct pool *pool = find(handle);
    CUmemoryPool own;
    for (int ordinal = 0; pool == NULL && device_entry(ordinal) >= 0; ordinal++)
        if (REAL(cuDeviceGetDefaultMemPool)(&own, ordinal) == CUDA_SUCCESS && own == handle)
            return add(handle, device_entry(ordinal));
    return pool != NULL ? pool : &elsewhere;
}

static uint64_t attribute(const struct pool *pool, CUmemPool_attribute which)
{
    cuuint64_t value = 0;
    return REAL(cuMemPoolGetAttribute)(pool->handle, which, &value) == CUDA_SUCCESS ? value : pool->charged;
}

static void refresh(struct pool *pool)
{
    if (pool->handle == NULL || pool->device < 0 || pool->managed)
        return;
    uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    if (reserved > pool->charged)
        hold_anyway(pool->device, LAMINA_POOL, reserved - pool->charged);
    else if (reserved < pool->charged)
        give_back(pool->device, LAMINA_POOL, pool->charged - reserved);
    pool->charged = reserved;
}

/* The driver lets go of what was freed only once the program waits for the GPU, so one look may be too early. */
static bool can_shrink(const struct pool *pool)
{
    if (pool->handle == NULL || pool->charged < SMALLEST_STEP)
        return false;
    return attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) <= pool->charged - SMALLEST_STEP;
}

void pools_refresh(void)
{
    pthread_mutex_lock(&lock);
    freed = false;
    for (struct pool *pool = pools; pool != NULL; pool = pool->next) {
        refresh(pool);
        if (can_shrink(pool))
            freed = true;
    }
    pthread_mutex_unlock(&lock);
}

void pools_refresh_if_freed(void)
{
    if (atomic_load_explicit(&freed, memory_order_relaxed))
        pools_refresh();
}

static void remove_pool(struct pool *pool)
{
    struct pool **link = &pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    give_back(pool->device, LAMINA_POOL, pool->charged);
    free(pool);
}

void pools_freed(const struct block *block)
{
    pthread_mutex_lock(&lock);
    struct pool *pool = pools;
    while (pool != NULL && pool != block->object)
        pool = pool->next;
    if (pool != NULL) {
        pool->used -= block->bytes < pool->used ? block->bytes : pool->used;
        freed = true;
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

/* Makes sure of the memory by which the pool may grow: nothing if what it has free seems enough, else what is missing
 * in whole steps. Our own count of what is free is for speed: the driver is asked when it says too little. Before a
 * refusal the pool gives back what it does not use, as the driver itself would have it. */
static CUresult announce(struct pool *pool, uint64_t bytes, uint64_t *announced)
{
    *announced = 0;
    if (pool->used <= pool->charged && bytes <= pool->charged - pool->used)
        return CUDA_SUCCESS;
    refresh(pool);
    uint64_t used = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    uint64_t spare = pool->charged > used ? pool->charged - used : 0;
    *announced = bytes <= spare ? 0 : bytes > UINT64_MAX - step ? bytes : (bytes - spare + step - 1) / step * step;
    if (hold_quietly(pool->device, LAMINA_POOL, *announced) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    REAL(cuMemPoolTrimTo)(pool->handle, 0);
    pools_refresh();
    *announced = bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
    return hold(pool->device, LAMINA_POOL, *announced);
}

/* The pool has grown by something: that much is now certain, and it is either within the limit or undone. */
static CUresult settle(struct pool *pool, const struct request *request, uint64_t announced, CUdeviceptr pointer)
{
    uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t grown = reserved > pool->charged ? reserved - pool->charged : 0;
    CUresult result = hold_adjust(pool->device, LAMINA_POOL, announced, grown);
    struct block replaced, block = {.key = pointer, .bytes = in_units(request->bytes), .object = pool,
                                    .class = BLOCK_POINTER, .kind = LAMINA_POOL, .device = (uint8_t)pool->device};
    while (step > SMALLEST_STEP && grown % step != 0)
        step /= 2;
    if (result == CUDA_SUCCESS) {
        pool->charged += grown;
        pool->used += block.bytes;
        if (blocks_put(&block, &replaced))
            return CUDA_SUCCESS;
        pool->used -= block.bytes;
    } else
        give_back(pool->device, LAMINA_POOL, announced);
    REAL(cuMemFreeAsync)(pointer, request->stream);
    request->synchronize(request->stream);
    REAL(cuMemPoolTrimTo)(pool->handle, 0);
    refresh(pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate_captured(const struct request *request, CUgraph graph, CUdeviceptr *pointer)
{
    CUcontext context;
    int device = context_device(&context);
    if (device >= 0 && !graphs_note(graph))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = request->make(request, pointer);
    if (result == CUDA_SUCCESS)
        graphs_allocates(graph, device, in_whole_blocks(request->bytes), *pointer);
    return result;
}

static CUresult make_or_spill(struct pool *pool, const struct request *request, uint64_t announced,
                              CUdeviceptr *pointer)
{
    CUcontext context;
    bool due = announced > 0 && spill_due(pool->device);
    CUresult result = due ? CUDA_ERROR_OUT_OF_MEMORY : request->make(request, pointer);
    if (result == CUDA_SUCCESS)
        return settle(pool, request, announced, *pointer);
    give_back(pool->device, LAMINA_POOL, announced);
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !spill_possible(pool->device))
        return result;
    context_device(&context);
    return memory_spilled(pointer, pool->device, context, request->bytes);
}

static CUresult allocate_managed(const struct pool *pool, const struct request *request, CUdeviceptr *pointer)
{
    uint64_t taken = in_blocks(request->bytes);
    CUresult result = hold(pool->device, LAMINA_MANAGED, taken);
    if (result != CUDA_SUCCESS)
        return result;
    result = request->make(request, pointer);
    if (result == CUDA_SUCCESS)
        return memory_book(*pointer, pool->device, NULL, LAMINA_MANAGED, taken, 0);
    give_back(pool->device, LAMINA_MANAGED, taken);
    return result;
}

static CUresult allocate(const struct request *request, CUdeviceptr *pointer)
{
    if (pointer == NULL || request->bytes == 0)
        return request->make(request, pointer);
    CUgraph graph = graph_captured(request->capture_info, request->stream);
    if (graph != NULL)
        return allocate_captured(request, graph, pointer);
    pthread_mutex_lock(&lock);
    struct pool *pool = request->device >= 0 ? add(request->pool, request->device) : find_or_add(request->pool);
    uint64_t announced = 0;
    CUresult result = pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    if (pool != NULL && pool->device < 0)
        result = request->make(request, pointer);
    else if (pool != NULL && pool->managed)
        result = allocate_managed(pool, request, pointer);
    else if (pool != NULL && (result = announce(pool, in_units(request->bytes), &announced)) == CUDA_SUCCESS)
        result = make_or_spill(pool, request, announced, pointer);
    pthread_mutex_unlock(&lock);
    return result;
}

/* From the pool that the current device allocates from; without a context, for the driver's own answer. */
static CUresult allocate_from_current(struct request *request, CUdeviceptr *pointer)
{
    CUcontext context;
    request->device = context_device(&context);
    if (request->device < 0 ||
        REAL(cuDeviceGetMemPool)(&request->pool, device_ordinal(request->device)) != CUDA_SUCCESS)
        return request->make(request, pointer);
    return allocate(request, pointer);
}

static CUresult make(const struct request *r, CUdeviceptr *pointer)
{
    return REAL(cuMemAllocAsync)(pointer, r->bytes, r->stream);
}

static CUresult make_ptsz(const struct request *r, CUdeviceptr *pointer)
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
    struct request request = {make, REAL(cuStreamGetCaptureInfo_v2), REAL(cuStreamSynchronize), NULL, -1, stream, bytes};
    return allocate_from_current(&request, pointer);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    struct request request = {make_ptsz, REAL(cuStreamGetCaptureInfo_v2_ptsz), REAL(cuStreamSynchronize_ptsz), NULL, -1,
                              stream, bytes};
    return allocate_from_current(&request, pointer);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    const struct request request = {make_from, REAL(cuStreamGetCaptureInfo_v2), REAL(cuStreamSynchronize), pool, -1,
                                    stream, bytes};
    return pool == NULL ? make_from(&request, pointer) : allocate(&request, pointer);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    const struct request request = {make_from_ptsz, REAL(cuStreamGetCaptureInfo_v2_ptsz), REAL(cuStreamSynchronize_ptsz),
                                    pool, -1, stream, bytes};
    return pool == NULL ? make_from_ptsz(&request, pointer) : allocate(&request, pointer);
}

/* Managed memory may be on any GPU, wherever it is wished to be: then it counts on the one that the program works with. */
static int device_of_pool(const CUmemLocation *location, CUmemAllocationType type)
{
    CUcontext context;
    int device = device_of_location(location);
    if (device >= 0 || type != CU_MEM_ALLOCATION_TYPE_MANAGED)
        return device;
    device = context_device(&context);
    return device >= 0 ? device : device_entry(0);
}

/* False when there is no memory to note the pool. */
static bool found(CUmemoryPool handle, const CUmemLocation *location, CUmemAllocationType type)
{
    int device = device_of_pool(location, type);
    if (device < 0)
        return true;
    pthread_mutex_lock(&lock);
    struct pool *pool = add(handle, device);
    if (pool != NULL)
        pool->managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    pthread_mutex_unlock(&lock);
    return pool != NULL;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    CUresult result = REAL(cuMemPoolCreate)(pool, props);
    if (result != CUDA_SUCCESS || found(*pool, &props->location, props->allocType))
        return result;
    REAL(cuMemPoolDestroy)(*pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = REAL(cuMemGetDefaultMemPool)(pool, location, type);
    return result != CUDA_SUCCESS || found(*pool, location, type) ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = REAL(cuMemGetMemPool)(pool, location, type);
    return result != CUDA_SUCCESS || found(*pool, location, type) ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemPoolDestroy)(handle);
    struct pool *pool = result == CUDA_SUCCESS && handle != NULL ? find(handle) : NULL;
    if (pool != NULL) {
        pool->handle = NULL;
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
