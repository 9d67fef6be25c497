/* Adding nodes to graphs without a capture. */
#include "cuda/driver.h"
#include "cuda/function.h"
#include "cuda/graph.h"

#include <string.h>

#define V1_BYTES offsetof(CUDA_KERNEL_NODE_PARAMS, kern)

static CUresult check(const void *out, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    TRY(driver_check_ready());
    if (out == NULL || !graph_is_valid(graph) || (count > 0 && dependencies == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!node_is_valid(dependencies[i]))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult add_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count, int type)
{
    TRY(check(out, graph, dependencies, count));
    *out = graph_add_node(graph, type, dependencies, count);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *params)
{
    TRY(check(out, graph, dependencies, count));
    return params != NULL ? graph_add_kernel(graph, params, dependencies, count, out) : CUDA_ERROR_INVALID_VALUE;
}

/* The first version of the parameters is the start of the second. */
static CUDA_KERNEL_NODE_PARAMS from_v1(const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUDA_KERNEL_NODE_PARAMS full = {0};
    memcpy(&full, params, V1_BYTES);
    return full;
}

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS full = from_v1(params);
    return cuGraphAddKernelNode_v2(out, graph, dependencies, count, &full);
}

static bool is_kernel(CUgraphNode node)
{
    return node_is_valid(node) && node->type == CU_GRAPH_NODE_TYPE_KERNEL;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!is_kernel(node) || params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *params = node->kernel;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!is_kernel(node) || params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(params, &node->kernel, V1_BYTES);
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!is_kernel(node) || params == NULL || !function_is_valid(params->func))
        return CUDA_ERROR_INVALID_VALUE;
    node->kernel = *params;
    node->ns = function_read_duration(params->func, params->kernelParams, params->extra);
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS full = from_v1(params);
    return cuGraphKernelNodeSetParams_v2(node, &full);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMCPY3D *params, CUcontext ctx)
{
    (void)params, (void)ctx;
    return add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMCPY);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
    (void)params, (void)ctx;
    return add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMSET);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    return add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EMPTY);
}

CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS *params)
{
    if (params == NULL || params->fn == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_HOST));
    (*out)->host = *params;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                  CUgraph child)
{
    CUgraph copy;
    TRY(cuGraphClone(&copy, child));
    TRY(add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_GRAPH));
    (*out)->child = copy;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                   CUevent event)
{
    TRY(add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD));
    (*out)->event = event;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                 CUevent event)
{
    (void)event;
    return add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    TRY(check(out, graph, dependencies, count));
    struct device *dev = params != NULL ? device_at(params->poolProps.location.id) : NULL;
    if (dev == NULL || params->bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(graph_add_allocation(graph, dev, params->bytesize, dependencies, count, out));
    params->dptr = (*out)->memory->start;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                               CUdeviceptr at)
{
    TRY(add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEM_FREE));
    (*out)->freed = at;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                        CUgraphNodeParams *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cuGraphAddKernelNode_v2(out, graph, dependencies, count, &params->kernel);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return cuGraphAddMemAllocNode(out, graph, dependencies, count, &params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return cuGraphAddMemFreeNode(out, graph, dependencies, count, params->free.dptr);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return add_node(out, graph, dependencies, count, params->type);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
    (void)edges;
    return cuGraphAddNode(out, graph, dependencies, count, params);
}
