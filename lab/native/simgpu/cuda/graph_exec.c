/* Graphs that can be run. Their nodes run in the order in which they were added. Copies and fills in a graph take no
 * time and move no data. */
#include "core/timeline.h"
#include "cuda/callback.h"
#include "cuda/capture.h"
#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/event.h"
#include "cuda/graph.h"
#include "cuda/graph_memory.h"
#include "cuda/launch.h"

#include <stdlib.h>

#define EXEC_MAGIC 0x45584543
#define INSTANTIATE_UPLOAD 2
#define GRAPH_EXEC_UPDATE_FAILURE ((CUresult)910)
#define TOPOLOGY_CHANGED 2

static bool exec_is_valid(CUgraphExec exec)
{
    return exec != NULL && exec->magic == EXEC_MAGIC;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    TRY(driver_check_ready());
    if (out == NULL || !graph_is_valid(graph))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec exec = calloc(1, sizeof *exec);
    if (exec == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = cuGraphClone(&exec->graph, graph);
    exec->owns_graph = result == CUDA_SUCCESS;
    if (result == CUDA_ERROR_NOT_SUPPORTED) {
        exec->graph = graph;
        graph->references++;
        result = CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS) {
        free(exec);
        return result;
    }
    exec->magic = EXEC_MAGIC;
    exec->flags = flags;
    *out = exec;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log, size_t bytes)
{
    if (error_node != NULL)
        *error_node = NULL;
    if (log != NULL && bytes > 0)
        *log = '\0';
    return cuGraphInstantiateWithFlags(out, graph, 0);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuGraphInstantiateWithFlags(out, graph, params->flags);
    if (result == CUDA_SUCCESS && (params->flags & INSTANTIATE_UPLOAD))
        result = cuGraphUpload(*out, params->hUploadStream);
    params->hErrNode_out = NULL;
    params->result_out = result != CUDA_SUCCESS;
    return result;
}

static CUresult run_nodes(CUgraph graph, CUstream stream);

static void run_memory_node(CUgraphNode node, CUstream stream)
{
    driver_lock();
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        graph_memory_allocate(node->memory, stream->ctx);
    else
        memory_free(memory_find(node->freed));
    driver_unlock();
}

static CUresult run_node(CUgraphNode node, CUstream stream)
{
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        launch_append(stream, node->ns);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        event_record(node->event, stream);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_HOST:
        return callback_enqueue(stream, node->host.fn, NULL, node->host.userData);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return run_nodes(node->child, stream);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        run_memory_node(node, stream);
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

static CUresult run_nodes(CUgraph graph, CUstream stream)
{
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        TRY(run_node(node, stream));
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    if (!exec_is_valid(exec))
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL)
        return capture_add_child(stream, exec->graph);
    CUresult result = graph_memory_reserve(exec, true);
    if (result == CUDA_SUCCESS)
        result = run_nodes(exec->graph, stream);
    if (exec->dev != NULL)
        exec->dev->graph_end = timeline_end(&driver.m, exec->dev->gpu, driver.slot);
    return result;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream handle)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    return exec_is_valid(exec) ? graph_memory_reserve(exec, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    if (!exec_is_valid(exec))
        return CUDA_ERROR_INVALID_VALUE;
    graph_memory_remove(exec);
    cuGraphDestroy(exec->graph);
    exec->magic = 0;
    free(exec);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!exec_is_valid(exec) || !node_is_valid(node) || params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    /* The node belongs to the original graph; its copy has the same place in the copied graph. */
    CUgraphNode twin = exec->graph->first;
    for (CUgraphNode n = node->graph->first; n != NULL && n != node && twin != NULL; n = n->next)
        twin = twin->next;
    return twin != NULL ? cuGraphKernelNodeSetParams_v2(twin, params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    CUgraph copy;
    if (!exec_is_valid(exec) || !graph_is_valid(graph))
        return CUDA_ERROR_INVALID_VALUE;
    if (info != NULL)
        *info = (CUgraphExecUpdateResultInfo){0};
    if (graph->count != exec->graph->count || !exec->owns_graph) {
        if (info != NULL)
            info->result = TOPOLOGY_CHANGED;
        return GRAPH_EXEC_UPDATE_FAILURE;
    }
    TRY(cuGraphClone(&copy, graph));
    cuGraphDestroy(exec->graph);
    exec->graph = copy;
    return CUDA_SUCCESS;
}
