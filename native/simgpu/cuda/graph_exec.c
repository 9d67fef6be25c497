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

struct CUgraphExec_st {
    uint32_t magic;
    CUgraph graph;      /* the original while it allocates memory, else a copy of its own */
    bool owns_graph;
    unsigned long long flags;
};

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
    params->hErrNode_out = NULL;
    params->result_out = result != CUDA_SUCCESS;
    return result;
}

static CUresult take_memory(allocation *a) {
    CUresult result = CUDA_SUCCESS;
    driver_lock();
    if (a->charged_mib == 0) {
        uint32_t mib = memory_blocks_mib(a->size);
        if (charge_take(a->dev, mib)) {
            a->charged_mib = mib;
            arena_set(a->start, a->size, a);
        } else {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    driver_unlock();
    return result;
}

/* Memory of a graph stays charged, free nodes or not, until the graph is destroyed. */
static CUresult run(CUgraph graph, CUstream stream);

static CUresult run_node(CUgraphNode node, CUstream stream) {
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: launch_time(stream, node->ns); return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: event_set(node->event, stream); return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_HOST: return callback_add(stream, node->host.fn, NULL, node->host.userData);
    case CU_GRAPH_NODE_TYPE_GRAPH: return run(node->child, stream);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return take_memory(node->memory);
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
    return run(exec->graph, stream);
}

SIM_API CUresult cuGraphUpload(CUgraphExec exec, CUstream handle) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    return exec_valid(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
    if (!exec_valid(exec)) return CUDA_ERROR_INVALID_VALUE;
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

SIM_API CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    return driver_device(ordinal) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SIM_API CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void *value) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (driver_device(ordinal) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    (void)attribute;
    *(cuuint64_t *)value = 0;
    return CUDA_SUCCESS;
}
