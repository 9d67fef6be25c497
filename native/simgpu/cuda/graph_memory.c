/* Memory of graphs: each device has one store for all graphs of the process. It grows when a graph that needs more is
 * mapped, at a launch or an upload, and keeps what it has until it is trimmed. Graphs share it, and nodes that allocate
 * have what nodes before them freed. A block that no node freed is the program's, also when its graph is gone. */
#include <stdlib.h>

#include "graph.h"

#define AUTO_FREE 1u

static CUgraphExec mapped;
static uint32_t generation;

static uint32_t max(uint32_t a, uint32_t b) { return a > b ? a : b; }

static CUgraphExec first(void) {
    if (generation != driver.generation) mapped = NULL;
    generation = driver.generation;
    return mapped;
}

static allocation *memory_of(CUgraph graph, CUdeviceptr at) {
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        if (node->memory != NULL && node->memory->start == at) return node->memory;
    return NULL;
}

/* What the nodes hold at most at once. */
static uint32_t most_mib(CUgraph graph) {
    uint32_t live = 0, most = 0;
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        allocation *freed = node->type == CU_GRAPH_NODE_TYPE_MEM_FREE ? memory_of(graph, node->freed) : NULL;
        if (node->memory != NULL) live += memory_blocks_mib(node->memory->size);
        if (freed != NULL) live -= memory_blocks_mib(freed->size);
        most = max(most, live);
    }
    return most;
}

static bool reserve(device *dev, uint32_t mib) {
    uint32_t more = mib > dev->graph_reserved_mib ? mib - dev->graph_reserved_mib : 0;
    if (more > 0 && !charge_take(dev, more)) return false;
    dev->graph_reserved_mib += more;
    return true;
}

/* What a former launch left must be freed before the next one; by the program, or by the launch where it was so wished. */
static CUresult free_left(CUgraphExec exec) {
    for (CUgraphNode node = exec->graph->first; node != NULL; node = node->next) {
        if (node->memory == NULL || node->memory->charged_mib == 0) continue;
        if ((exec->flags & AUTO_FREE) == 0) return CUDA_ERROR_INVALID_VALUE;
        memory_free(node->memory);
    }
    return CUDA_SUCCESS;
}

CUresult graph_memory_map(CUgraphExec exec, bool freeing) {
    CUgraphNode node = exec->graph->first;
    while (node != NULL && node->memory == NULL) node = node->next;
    if (node == NULL) return CUDA_SUCCESS; /* it allocates nothing */
    device *dev = node->memory->dev;
    driver_lock();
    CUresult result = freeing ? free_left(exec) : CUDA_SUCCESS;
    uint32_t most = most_mib(exec->graph);
    if (result == CUDA_SUCCESS && !reserve(dev, dev->graph_live_mib + most)) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && exec->dev == NULL) {
        exec->next = first();
        mapped = exec;
    }
    if (result == CUDA_SUCCESS) {
        exec->dev = dev;
        exec->mapped_mib = most;
    }
    driver_unlock();
    return result;
}

void graph_memory_unmap(CUgraphExec exec) {
    driver_lock();
    first();
    for (CUgraphExec *at = &mapped; *at != NULL; at = &(*at)->next)
        if (*at == exec) {
            *at = exec->next;
            break;
        }
    driver_unlock();
}

void graph_memory_take(allocation *a, CUcontext ctx) {
    a->charged_mib = memory_blocks_mib(a->size);
    a->dev->graph_live_mib += a->charged_mib;
    arena_set(a->start, a->size, a);
    memory_link(ctx, a);
}

void graph_memory_free(allocation *a) {
    if (a->touched) arena_discard(a->start, a->size);
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

void graph_memory_detach(allocation *a) {
    driver_lock();
    a->extra = NULL;
    if (a->charged_mib == 0) {
        arena_release(a->start, a->size);
        free(a);
    }
    driver_unlock();
}

/* What graphs have mapped that still run stays. */
static uint32_t used_mib(const device *dev) {
    uint32_t used = dev->graph_live_mib;
    for (CUgraphExec exec = first(); exec != NULL; exec = exec->next)
        if (exec->dev == dev) used = max(used, exec->mapped_mib);
    return used < dev->graph_reserved_mib ? used : dev->graph_reserved_mib;
}

void graph_memory_trim(device *dev) {
    bool running = timeline_done(&driver.m, dev->gpu, driver.slot, machine_now()) < dev->graph_end;
    for (CUgraphExec exec = first(); exec != NULL && !running; exec = exec->next)
        if (exec->dev == dev) exec->mapped_mib = 0;
    uint32_t used = used_mib(dev);
    charge_give(dev, dev->graph_reserved_mib - used);
    dev->graph_reserved_mib = used;
}

SIM_API CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    device *dev = driver_device(ordinal);
    if (dev == NULL) return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    graph_memory_trim(dev);
    driver_unlock();
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void *value) {
    enum { USED_CURRENT = 0, RESERVED_CURRENT = 2 };
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    device *dev = driver_device(ordinal);
    if (dev == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (value == NULL || (attribute != USED_CURRENT && attribute != RESERVED_CURRENT)) return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    *(cuuint64_t *)value = (attribute == USED_CURRENT ? used_mib(dev) : dev->graph_reserved_mib) * MIB;
    driver_unlock();
    return CUDA_SUCCESS;
}
