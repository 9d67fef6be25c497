/* Adding nodes to graphs by hand. */
#include <string.h>

#include "graph.h"
#include "module.h"

#define V1_BYTES offsetof(CUDA_KERNEL_NODE_PARAMS, kern)

static CUresult check(const void *out, CUgraph graph, const CUgraphNode *dependencies, size_t count) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL || !graph_valid(graph) || (count > 0 && dependencies == NULL)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!node_valid(dependencies[i])) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult add_plain(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count, int type) {
    CUresult result = check(out, graph, dependencies, count);
    if (result != CUDA_SUCCESS) return result;
    *out = graph_add(graph, type, dependencies, count);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                         const CUDA_KERNEL_NODE_PARAMS *params) {
    CUresult result = check(out, graph, dependencies, count);
    if (result != CUDA_SUCCESS) return result;
    return params != NULL ? graph_add_kernel(graph, params, dependencies, count, out) : CUDA_ERROR_INVALID_VALUE;
}

/* The first version of the parameters is the start of the second. */
SIM_API CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS *params) {
    CUDA_KERNEL_NODE_PARAMS full = {0};
    if (params == NULL) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&full, params, V1_BYTES);
    return cuGraphAddKernelNode_v2(out, graph, dependencies, count, &full);
}

SIM_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params) {
    if (!node_valid(node) || node->type != CU_GRAPH_NODE_TYPE_KERNEL || params == NULL) return CUDA_ERROR_INVALID_VALUE;
    *params = node->kernel;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params) {
    if (!node_valid(node) || node->type != CU_GRAPH_NODE_TYPE_KERNEL || params == NULL) return CUDA_ERROR_INVALID_VALUE;
    memcpy(params, &node->kernel, V1_BYTES);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
    if (!node_valid(node) || node->type != CU_GRAPH_NODE_TYPE_KERNEL || params == NULL || !function_valid(params->func))
        return CUDA_ERROR_INVALID_VALUE;
    node->kernel = *params;
    node->ns = function_duration(params->func, params->kernelParams, params->extra);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
    CUDA_KERNEL_NODE_PARAMS full = {0};
    if (params == NULL) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&full, params, V1_BYTES);
    return cuGraphKernelNodeSetParams_v2(node, &full);
}

SIM_API CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                      const CUDA_MEMCPY3D *params, CUcontext ctx) {
    (void)params, (void)ctx;
    return add_plain(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMCPY);
}

SIM_API CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                      const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx) {
    (void)params, (void)ctx;
    return add_plain(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMSET);
}

SIM_API CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count) {
    return add_plain(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EMPTY);
}

SIM_API CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                    const CUDA_HOST_NODE_PARAMS *params) {
    if (params == NULL || params->fn == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = add_plain(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_HOST);
    if (result == CUDA_SUCCESS) (*out)->host = *params;
    return result;
}

SIM_API CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                          CUgraph child) {
    CUgraph copy;
    CUresult result = cuGraphClone(&copy, child);
    if (result == CUDA_SUCCESS) result = add_plain(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_GRAPH);
    if (result == CUDA_SUCCESS) (*out)->child = copy;
    return result;
}

SIM_API CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                           CUevent event) {
    CUresult result = add_plain(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    if (result == CUDA_SUCCESS) (*out)->event = event;
    return result;
}

SIM_API CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                         CUevent event) {
    (void)event;
    return add_plain(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

SIM_API CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                        CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    CUresult result = check(out, graph, dependencies, count);
    if (result != CUDA_SUCCESS) return result;
    device *dev = params != NULL ? driver_device(params->poolProps.location.id) : NULL;
    if (dev == NULL || params->bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    result = graph_add_allocation(graph, dev, params->bytesize, dependencies, count, out);
    if (result == CUDA_SUCCESS) params->dptr = (*out)->memory->start;
    return result;
}

SIM_API CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                       CUdeviceptr at) {
    CUresult result = add_plain(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEM_FREE);
    if (result == CUDA_SUCCESS) (*out)->freed = at;
    return result;
}

SIM_API CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                CUgraphNodeParams *params) {
    if (params == NULL) return CUDA_ERROR_INVALID_VALUE;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return cuGraphAddKernelNode_v2(out, graph, dependencies, count, &params->kernel);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return cuGraphAddMemAllocNode(out, graph, dependencies, count, &params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return cuGraphAddMemFreeNode(out, graph, dependencies, count, params->free.dptr);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_EMPTY: return add_plain(out, graph, dependencies, count, params->type);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

SIM_API CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params) {
    (void)edges;
    return cuGraphAddNode(out, graph, dependencies, count, params);
}
