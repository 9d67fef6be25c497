/* Adding nodes that allocate or free memory to a graph. */
#include "cuda/devices.h"
#include "cuda/hooks.h"
#include "memory/graph_records.h"
#include "memory/reserve.h"

/* The calls that add a node differ only in their arguments. */
struct addition {
    CUresult (*add)(const struct addition *addition);
    CUgraphNode *node;
    CUgraph graph;
    const CUgraphNode *after;
    const CUgraphEdgeData *edges;
    size_t count;
    void *params;
};

static CUresult add_allocation(const struct addition *addition, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    int device = params == NULL ? -1 : device_of_location(&params->poolProps.location);
    if (device >= 0 && !graph_records_add(addition->graph))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = addition->add(addition);
    if (result == CUDA_SUCCESS && device >= 0)
        graph_records_note_allocation(addition->graph, device, whole_blocks(params->bytesize), params->dptr);
    return result;
}

static CUresult note_freed(CUresult result, CUgraph graph, CUdeviceptr pointer)
{
    if (result == CUDA_SUCCESS && graph_records_have_pointer(pointer))
        graph_records_note_free(graph, pointer);
    return result;
}

static CUresult add_node(const struct addition *addition)
{
    CUgraphNodeParams *params = addition->params;
    if (params != NULL && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return add_allocation(addition, &params->alloc);
    CUresult result = addition->add(addition);
    if (params != NULL && params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return note_freed(result, addition->graph, params->free.dptr);
    return result;
}

static CUresult add_mem_alloc(const struct addition *a)
{
    return REAL(cuGraphAddMemAllocNode)(a->node, a->graph, a->after, a->count, a->params);
}

static CUresult add_v1(const struct addition *a)
{
    return REAL(cuGraphAddNode)(a->node, a->graph, a->after, a->count, a->params);
}

static CUresult add_v2(const struct addition *a)
{
    return REAL(cuGraphAddNode_v2)(a->node, a->graph, a->after, a->edges, a->count, a->params);
}

static CUresult add_v3(const struct addition *a)
{
    return REAL(cuGraphAddNode_v3)(a->node, a->graph, a->after, a->edges, a->count, a->params);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    return add_allocation(&(struct addition){add_mem_alloc, node, graph, after, NULL, count, params}, params);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                               CUdeviceptr pointer)
{
    return note_freed(REAL(cuGraphAddMemFreeNode)(node, graph, after, count, pointer), graph, pointer);
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                        CUgraphNodeParams *params)
{
    return add_node(&(struct addition){add_v1, node, graph, after, NULL, count, params});
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
                           size_t count, CUgraphNodeParams *params)
{
    return add_node(&(struct addition){add_v2, node, graph, after, edges, count, params});
}

CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
                           size_t count, CUgraphNodeParams *params)
{
    return add_node(&(struct addition){add_v3, node, graph, after, edges, count, params});
}
