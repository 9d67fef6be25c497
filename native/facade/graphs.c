#include "graphs.h"

#include "blocks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct graph_record *records;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool any;

void graphs_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    records = NULL;
    any = false;
    graph_memory_forget();
}

void graphs_lock(void)
{
    pthread_mutex_lock(&lock);
}

bool graphs_try_lock(void)
{
    return pthread_mutex_trylock(&lock) == 0;
}

void graphs_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool graphs_any(void)
{
    return atomic_load_explicit(&any, memory_order_relaxed);
}

struct graph_record *graphs_of(CUgraph graph)
{
    struct graph_record *record = records;
    while (record != NULL && record->graph != graph)
        record = record->next;
    return record;
}

struct graph_record *graphs_of_exec(CUgraphExec exec)
{
    struct block block;
    return blocks_get(BLOCK_EXEC, (uint64_t)(uintptr_t)exec, &block) ? block.object : NULL;
}

bool graphs_note(CUgraph graph)
{
    graphs_lock();
    struct graph_record *record = graphs_of(graph);
    if (record == NULL && (record = calloc(1, sizeof *record)) != NULL) {
        *record = (struct graph_record){.next = records, .graph = graph};
        records = record;
        any = true;
    }
    graphs_unlock();
    return record != NULL;
}

void graphs_allocates(CUgraph graph, int device, uint64_t bytes, CUdeviceptr pointer)
{
    if (device < 0)
        return;
    graphs_lock();
    struct graph_record *record = graphs_of(graph);
    /* Without an entry, for lack of memory, nobody hears of its end: then the graph only seems to need more. */
    struct block replaced, block = {.key = pointer, .bytes = bytes, .object = record, .class = BLOCK_GRAPH,
                                    .context = (uint64_t)(uintptr_t)record, .device = (uint8_t)device};
    if (record != NULL) {
        uint64_t live = record->need[device].live;
        record->need[device].live = live = bytes > UINT64_MAX - live ? UINT64_MAX : live + bytes;
        if (live > record->need[device].most)
            record->need[device].most = live;
        blocks_put(&block, &replaced);
    }
    graphs_unlock();
}

void graphs_frees(CUgraph graph, CUdeviceptr pointer)
{
    struct block block;
    graphs_lock();
    struct graph_record *record = graphs_of(graph);
    /* One graph may free what another one allocates: that changes nothing of what either needs. */
    if (record != NULL && blocks_get(BLOCK_GRAPH, pointer, &block) && block.object == record) {
        blocks_take(BLOCK_GRAPH, pointer, &block);
        record->need[block.device].live -= block.bytes;
    }
    graphs_unlock();
}

bool graphs_know(CUdeviceptr pointer)
{
    struct block block;
    return graphs_any() && blocks_get(BLOCK_GRAPH, pointer, &block);
}

CUgraph graph_captured(__typeof__(cuStreamGetCaptureInfo_v2) *info, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    cuuint64_t id;
    if (info(stream, &status, &id, &graph, NULL, NULL) != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE)
        return NULL;
    return graph;
}

static void nothing(const struct block *block)
{
    (void)block;
}

/* Nothing can run it any more. Its memory is in the driver's store, and counts there. */
static void remove_unused(void)
{
    for (struct graph_record **link = &records; *link != NULL;) {
        struct graph_record *record = *link;
        if (record->graph != NULL || record->execs != 0) {
            link = &record->next;
            continue;
        }
        *link = record->next;
        blocks_drop_context((uint64_t)(uintptr_t)record, nothing);
        free(record);
    }
}

CUresult cuGraphDestroy(CUgraph graph)
{
    CUresult result = REAL(cuGraphDestroy)(graph);
    if (result != CUDA_SUCCESS || !graphs_any())
        return result;
    graphs_lock();
    struct graph_record *record = graphs_of(graph);
    if (record != NULL)
        record->graph = NULL;
    remove_unused();
    graphs_unlock();
    return result;
}

/* The driver allows one executable form of a graph that allocates at a time. */
static CUresult instantiated(CUresult result, const CUgraphExec *exec, CUgraph graph)
{
    if (result != CUDA_SUCCESS || !graphs_any())
        return result;
    graphs_lock();
    struct graph_record *record = graphs_of(graph);
    if (record != NULL) {
        struct block replaced, block = {.key = (uint64_t)(uintptr_t)*exec, .object = record, .class = BLOCK_EXEC};
        record->execs += blocks_put(&block, &replaced);
    }
    graphs_unlock();
    return result;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    struct block block;
    CUresult result = REAL(cuGraphExecDestroy)(exec);
    if (result != CUDA_SUCCESS || !graphs_any())
        return result;
    graphs_lock();
    if (blocks_take(BLOCK_EXEC, (uint64_t)(uintptr_t)exec, &block)) {
        ((struct graph_record *)block.object)->execs--;
        remove_unused();
    }
    graphs_unlock();
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

typedef CUresult (*maker)(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params);

/* This form may upload the graph at once. */
static CUresult with_params(maker make, CUresult (*wait)(CUstream), CUgraphExec *exec, CUgraph graph,
                            CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    enum { UPLOAD = 2 };
    uint64_t announced[LAMINA_MAX_DEVICES];
    if (!graphs_any() || params == NULL || (params->flags & UPLOAD) == 0)
        return instantiated(make(exec, graph, params), exec, graph);
    graphs_lock();
    struct graph_record *record = graphs_of(graph);
    CUresult result = record == NULL ? CUDA_SUCCESS : graphs_announce(record, params->hUploadStream, wait, announced);
    if (result == CUDA_SUCCESS) {
        result = make(exec, graph, params);
        if (record != NULL)
            graphs_settle(record, params->hUploadStream, result, announced);
    }
    graphs_unlock();
    return instantiated(result, exec, graph);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return with_params(REAL(cuGraphInstantiateWithParams), REAL(cuStreamSynchronize), exec, graph, params);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return with_params(REAL(cuGraphInstantiateWithParams_ptsz), REAL(cuStreamSynchronize_ptsz), exec, graph, params);
}
