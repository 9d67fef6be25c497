#include "cuda/graph_memory.h"

#include "core/timeline.h"
#include "cuda/capture.h"
#include "cuda/charge.h"
#include "cuda/driver.h"
#include "cuda/graph.h"
#include "cuda/memory.h"
#include "cuda/reclaim.h"

#include <stdlib.h>

#define INSTANTIATE_AUTO_FREE 1

static CUgraphExec execs; /* those that allocate and have run */

void graph_memory_after_fork(void)
{
    execs = NULL;
}

static uint32_t max(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static struct allocation *find_memory(CUgraph graph, CUdeviceptr at)
{
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        if (node->memory != NULL && node->memory->start == at)
            return node->memory;
    return NULL;
}

/* The most that the nodes hold at once. */
static uint32_t most_mib(CUgraph graph)
{
    uint32_t live = 0, most = 0;
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        struct allocation *freed = node->type == CU_GRAPH_NODE_TYPE_MEM_FREE ? find_memory(graph, node->freed) : NULL;
        if (node->memory != NULL)
            live += charge_round_up_mib(node->memory->size);
        if (freed != NULL)
            live -= charge_round_up_mib(freed->size);
        most = max(most, live);
    }
    return most;
}

static bool grow_store(struct device *dev, uint32_t mib)
{
    uint32_t more = mib > dev->graph_reserved_mib ? mib - dev->graph_reserved_mib : 0;
    if (more > 0 && !reclaim_take(dev, more))
        return false;
    dev->graph_reserved_mib += more;
    return true;
}

/* What a launch left must be freed before the next one, by the program or, if it was instantiated so, by the launch. */
static CUresult free_leftovers(CUgraphExec exec)
{
    for (CUgraphNode node = exec->graph->first; node != NULL; node = node->next) {
        if (node->memory == NULL || node->memory->charged_mib == 0)
            continue;
        if ((exec->flags & INSTANTIATE_AUTO_FREE) == 0)
            return CUDA_ERROR_INVALID_VALUE;
        memory_free(node->memory);
    }
    return CUDA_SUCCESS;
}

CUresult graph_memory_reserve(CUgraphExec exec, bool freeing)
{
    CUgraphNode node = exec->graph->first;
    while (node != NULL && node->memory == NULL)
        node = node->next;
    if (node == NULL)
        return CUDA_SUCCESS; /* it allocates nothing */
    struct device *dev = node->memory->dev;
    driver_lock();
    CUresult result = freeing ? free_leftovers(exec) : CUDA_SUCCESS;
    uint32_t most = most_mib(exec->graph);
    if (result == CUDA_SUCCESS && !grow_store(dev, dev->graph_live_mib + most))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && exec->dev == NULL) {
        exec->next = execs;
        execs = exec;
    }
    if (result == CUDA_SUCCESS) {
        exec->dev = dev;
        exec->reserved_mib = most;
    }
    driver_unlock();
    return result;
}

void graph_memory_remove(CUgraphExec exec)
{
    driver_lock();
    for (CUgraphExec *at = &execs; *at != NULL; at = &(*at)->next)
        if (*at == exec) {
            *at = exec->next;
            break;
        }
    driver_unlock();
}

/* A node or the program frees a block of a graph. Its addresses are the node's while there is one (`extra`). */
static void free_block(struct allocation *a)
{
    if (a->touched)
        arena_discard(a->start, a->size);
    a->touched = false;
    a->ctx = NULL;
    arena_set(a->start, a->size, NULL);
    a->dev->graph_live_mib -= a->charged_mib;
    a->charged_mib = 0;
    if (a->extra == NULL) {
        arena_release(a->start, a->size);
        free(a);
    }
}

void graph_memory_allocate(struct allocation *a, CUcontext ctx)
{
    a->charged_mib = charge_round_up_mib(a->size);
    a->release = free_block;
    a->dev->graph_live_mib += a->charged_mib;
    arena_set(a->start, a->size, a);
    memory_link(ctx, a);
}

/* What running graphs have reserved stays. */
static uint32_t used_mib(const struct device *dev)
{
    uint32_t used = dev->graph_live_mib;
    for (CUgraphExec exec = execs; exec != NULL; exec = exec->next)
        if (exec->dev == dev)
            used = max(used, exec->reserved_mib);
    return used < dev->graph_reserved_mib ? used : dev->graph_reserved_mib;
}

void graph_memory_trim(struct device *dev)
{
    bool running = timeline_done(&driver.m, dev->gpu, driver.slot, machine_now()) < dev->graph_end;
    for (CUgraphExec exec = execs; exec != NULL && !running; exec = exec->next)
        if (exec->dev == dev)
            exec->reserved_mib = 0;
    uint32_t used = used_mib(dev);
    charge_give(dev, dev->graph_reserved_mib - used);
    dev->graph_reserved_mib = used;
}

CUresult cuDeviceGraphMemTrim(CUdevice ordinal)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    TRY(capture_check_safe());
    driver_lock();
    graph_memory_trim(dev);
    driver_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
    enum { USED_CURRENT = 0, RESERVED_CURRENT = 2 };
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (value == NULL || (attribute != USED_CURRENT && attribute != RESERVED_CURRENT))
        return CUDA_ERROR_INVALID_VALUE;
    TRY(capture_check_safe());
    driver_lock();
    *(cuuint64_t *)value = (attribute == USED_CURRENT ? used_mib(dev) : dev->graph_reserved_mib) * MIB;
    driver_unlock();
    return CUDA_SUCCESS;
}
