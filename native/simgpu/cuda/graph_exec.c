/* Graphs that can be run. Their nodes run in the order in which they were added. Copies and fills in a graph take no
 * time and move no data. */
#include <stdlib.h>

#include "callback.h"
#include "capture.h"
#include "event.h"
#include "graph.h"
#include "launch.h"
#include "module.h"

#define EXEC_MAGIC 0x45584543u
#define UPLOAD 2u

static bool exec_valid(CUgraphExec exec) { return exec != NULL && exec->magic == EXEC_MAGIC; }

SIM_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL || !graph_valid(graph)) return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec exec = calloc(1, sizeof *exec);
    if (exec == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
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

SIM_API CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log, size_t bytes) {
    if (error_node != NULL) *error_node = NULL;
    if (log != NULL && bytes > 0) *log = '\0';
    return cuGraphInstantiateWithFlags(out, graph, 0);
}

SIM_API CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    if (params == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuGraphInstantiateWithFlags(out, graph, params->flags);
    if (result == CUDA_SUCCESS && (params->flags & UPLOAD)) result = cuGraphUpload(*out, params->hUploadStream);
    params->hErrNode_out = NULL;
    params->result_out = result != CUDA_SUCCESS;
    return result;
}

static CUresult run(CUgraph graph, CUstream stream);

static CUresult run_memory(CUgraphNode node, CUstream stream) {
    driver_lock();
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) graph_memory_take(node->memory, stream->ctx);
    else memory_free(memory_find(node->freed));
    driver_unlock();
    return CUDA_SUCCESS;
}

static CUresult run_node(CUgraphNode node, CUstream stream) {
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: launch_time(stream, node->ns); return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: event_set(node->event, stream); return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_HOST: return callback_add(stream, node->host.fn, NULL, node->host.userData);
    case CU_GRAPH_NODE_TYPE_GRAPH: return run(node->child, stream);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return run_memory(node, stream);
    default: return CUDA_SUCCESS;
    }
}

static CUresult run(CUgraph graph, CUstream stream) {
    CUresult result = CUDA_SUCCESS;
    for (CUgraphNode node = graph->first; node != NULL && result == CUDA_SUCCESS; node = node->next)
        result = run_node(node, stream);
    return result;
}

SIM_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (!exec_valid(exec)) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL) return capture_child(stream, exec->graph);
    result = graph_memory_map(exec, true);
    if (result == CUDA_SUCCESS) result = run(exec->graph, stream);
    if (exec->dev != NULL) exec->dev->graph_end = timeline_end(&driver.m, exec->dev->gpu, driver.slot);
    return result;
}

SIM_API CUresult cuGraphUpload(CUgraphExec exec, CUstream handle) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    return exec_valid(exec) ? graph_memory_map(exec, false) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
    if (!exec_valid(exec)) return CUDA_ERROR_INVALID_VALUE;
    graph_memory_unmap(exec);
    cuGraphDestroy(exec->graph);
    exec->magic = 0;
    free(exec);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
    if (!exec_valid(exec) || !node_valid(node) || params == NULL) return CUDA_ERROR_INVALID_VALUE;
    /* The node belongs to the original graph; its twin has the same place in the copy. */
    CUgraphNode twin = exec->graph->first;
    for (CUgraphNode n = node->graph->first; n != NULL && n != node && twin != NULL; n = n->next) twin = twin->next;
    return twin != NULL ? cuGraphKernelNodeSetParams_v2(twin, params) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
    CUgraph copy;
    if (!exec_valid(exec) || !graph_valid(graph)) return CUDA_ERROR_INVALID_VALUE;
    if (info != NULL) *info = (CUgraphExecUpdateResultInfo){0};
    if (graph->count != exec->graph->count || !exec->owns_graph) {
        if (info != NULL) info->result = 2; /* the topology changed */
        return (CUresult)910;
    }
    CUresult result = cuGraphClone(&copy, graph);
    if (result != CUDA_SUCCESS) return result;
    cuGraphDestroy(exec->graph);
    exec->graph = copy;
    return CUDA_SUCCESS;
}
