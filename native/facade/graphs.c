#include "graphs.h"

#include "devices.h"
#include "hold.h"
#include "hooks.h"

#include <pthread.h>
#include <stdlib.h>

struct record {
    struct record *next;
    CUgraph graph; /* NULL: destroyed, but its executable form is not */
    int device;
    uint64_t live;    /* allocated and not freed by the nodes so far */
    uint64_t charged; /* the most that `live` was */
    unsigned execs;
};

static struct record *records;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void graphs_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    records = NULL;
}

static struct record *find(CUgraph graph, int device)
{
    struct record *record = records;
    while (record != NULL && (record->graph != graph || (device >= 0 && record->device != device)))
        record = record->next;
    return record;
}

static struct record *find_or_add(CUgraph graph, int device)
{
    struct record *record = find(graph, device);
    if (record == NULL && (record = calloc(1, sizeof *record)) != NULL) {
        *record = (struct record){.next = records, .graph = graph, .device = device};
        records = record;
    }
    return record;
}

CUresult graphs_announce(CUgraph graph, int device, uint64_t bytes)
{
    if (device < 0)
        return CUDA_SUCCESS; /* not on a granted GPU, or the driver has its own answer */
    pthread_mutex_lock(&lock);
    struct record *record = find_or_add(graph, device);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (record != NULL && bytes <= UINT64_MAX - record->live) {
        uint64_t live = record->live + bytes;
        result = live <= record->charged ? CUDA_SUCCESS : hold(device, LAMINA_POOL, live - record->charged);
        if (result == CUDA_SUCCESS) {
            record->live = live;
            record->charged = live > record->charged ? live : record->charged;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void graphs_settle(CUgraph graph, int device, uint64_t bytes, CUresult result, CUdeviceptr pointer)
{
    pthread_mutex_lock(&lock);
    struct record *record = device < 0 ? NULL : find(graph, device);
    struct block replaced, block = {.key = pointer, .bytes = bytes, .object = record, .class = BLOCK_GRAPH,
                                    .kind = LAMINA_POOL, .device = (uint8_t)device};
    if (record != NULL && (result != CUDA_SUCCESS || !blocks_put(&block, &replaced)))
        record->live -= bytes; /* what was charged for it stays the graph's until the graph goes */
    pthread_mutex_unlock(&lock);
}

void graphs_freed(const struct block *block)
{
    pthread_mutex_lock(&lock);
    struct record *record = records;
    while (record != NULL && record != block->object)
        record = record->next;
    if (record != NULL)
        record->live -= block->bytes < record->live ? block->bytes : record->live;
    pthread_mutex_unlock(&lock);
}

/* Gives back what nothing can run any more. The driver keeps the memory for other graphs until it is told to trim. */
static void remove_unused(void)
{
    for (struct record **link = &records; *link != NULL;) {
        struct record *record = *link;
        if (record->graph != NULL || record->execs != 0) {
            link = &record->next;
            continue;
        }
        *link = record->next;
        REAL(cuDeviceGraphMemTrim)(device_ordinal(record->device));
        give_back(record->device, LAMINA_POOL, record->charged);
        free(record);
    }
}

CUresult cuGraphDestroy(CUgraph graph)
{
    CUresult result = REAL(cuGraphDestroy)(graph);
    pthread_mutex_lock(&lock);
    for (struct record *record = result == CUDA_SUCCESS ? find(graph, -1) : NULL; record != NULL;
         record = find(graph, -1))
        record->graph = NULL;
    remove_unused();
    pthread_mutex_unlock(&lock);
    return result;
}

/* An executable form of a graph that allocates exists; the driver allows one at a time. */
static CUresult instantiated(CUresult result, const CUgraphExec *exec, CUgraph graph)
{
    pthread_mutex_lock(&lock);
    struct record *record = result == CUDA_SUCCESS ? find(graph, -1) : NULL;
    if (record != NULL) {
        struct block replaced, block = {.key = (uint64_t)(uintptr_t)*exec, .object = record, .class = BLOCK_EXEC};
        record->execs += blocks_put(&block, &replaced);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    struct block block;
    CUresult result = REAL(cuGraphExecDestroy)(exec);
    pthread_mutex_lock(&lock);
    if (result == CUDA_SUCCESS && blocks_take(BLOCK_EXEC, (uint64_t)(uintptr_t)exec, &block)) {
        ((struct record *)block.object)->execs--;
        remove_unused();
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *wrong, char *log, size_t size)
{
    return instantiated(REAL(cuGraphInstantiate)(exec, graph, wrong, log, size), exec, graph);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *wrong, char *log, size_t size)
{
    return instantiated(REAL(cuGraphInstantiate_v2)(exec, graph, wrong, log, size), exec, graph);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    return instantiated(REAL(cuGraphInstantiateWithFlags)(exec, graph, flags), exec, graph);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return instantiated(REAL(cuGraphInstantiateWithParams)(exec, graph, params), exec, graph);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return instantiated(REAL(cuGraphInstantiateWithParams_ptsz)(exec, graph, params), exec, graph);
}
