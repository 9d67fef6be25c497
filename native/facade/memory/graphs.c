/* Making and destroying graphs. */
#include "memory/blocks.h"
#include "memory/graph_memory.h"
#include "memory/graph_records.h"
#include "shared/assertion.h"

CUresult cuGraphDestroy(CUgraph graph)
{
    CUresult result = REAL(cuGraphDestroy)(graph);
    if (result != CUDA_SUCCESS || !graph_records_any())
        return result;
    graph_records_lock();
    struct graph_record *record = graph_record_of(graph);
    if (record != NULL)
        record->graph = NULL;
    graph_records_remove_unused();
    graph_records_unlock();
    return result;
}

/* The driver allows only one executable form at a time of a graph that allocates. */
static CUresult finish_instantiation(CUresult result, const CUgraphExec *exec, CUgraph graph)
{
    if (result != CUDA_SUCCESS || !graph_records_any())
        return result;
    graph_records_lock();
    struct graph_record *record = graph_record_of(graph);
    if (record != NULL) {
        struct block replaced, block = {.key = (uint64_t)(uintptr_t)*exec, .object = record, .class = BLOCK_EXEC};
        record->execs += blocks_put(&block, &replaced);
    }
    graph_records_unlock();
    return result;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    struct block block;
    CUresult result = REAL(cuGraphExecDestroy)(exec);
    if (result != CUDA_SUCCESS || !graph_records_any())
        return result;
    graph_records_lock();
    if (blocks_take(BLOCK_EXEC, (uint64_t)(uintptr_t)exec, &block)) {
        ASSERT(((struct graph_record *)block.object)->execs > 0);
        ((struct graph_record *)block.object)->execs--;
        graph_records_remove_unused();
    }
    graph_records_unlock();
    return result;
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *wrong, char *log, size_t size)
{
    return finish_instantiation(REAL(cuGraphInstantiate)(exec, graph, wrong, log, size), exec, graph);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *wrong, char *log, size_t size)
{
    return finish_instantiation(REAL(cuGraphInstantiate_v2)(exec, graph, wrong, log, size), exec, graph);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    return finish_instantiation(REAL(cuGraphInstantiateWithFlags)(exec, graph, flags), exec, graph);
}

typedef CUresult (*maker)(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params);

/* Says whether memory for the graph lacks. */
static CUresult try_upload(maker make, bool last, CUgraphExec *exec, CUgraph graph,
                           CUDA_GRAPH_INSTANTIATE_PARAMS *params, bool *lacks)
{
    uint64_t reserved[LAMINA_MAX_DEVICES];
    graph_records_lock();
    struct graph_record *record = graph_record_of(graph);
    CUresult result = record == NULL ? CUDA_SUCCESS : graph_memory_reserve(record, last, reserved);
    *lacks = result != CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
        result = make(exec, graph, params);
        if (record != NULL)
            graph_memory_settle(record, params->hUploadStream, result, reserved);
    }
    graph_records_unlock();
    return finish_instantiation(result, exec, graph);
}

/* This form may also upload the graph. */
static CUresult with_params(maker make, CUresult (*query)(CUstream), CUgraphExec *exec, CUgraph graph,
                            CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    enum { UPLOAD = 2 };
    bool lacks;
    if (!graph_records_any() || params == NULL || (params->flags & UPLOAD) == 0)
        return finish_instantiation(make(exec, graph, params), exec, graph);
    CUresult result = try_upload(make, false, exec, graph, params, &lacks);
    if (!lacks)
        return result;
    graph_memory_wait(params->hUploadStream, query);
    return try_upload(make, true, exec, graph, params, &lacks);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return with_params(REAL(cuGraphInstantiateWithParams), REAL(cuStreamQuery), exec, graph, params);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return with_params(REAL(cuGraphInstantiateWithParams_ptsz), REAL(cuStreamQuery_ptsz), exec, graph, params);
}
