/* Graphs: lists of nodes in the order in which they were added, which respects every dependency. */
#ifndef SIMGPU_GRAPH_H
#define SIMGPU_GRAPH_H

#include "cuda/allocation.h"
#include "cuda/user_object.h"

struct CUgraphNode_st {
    uint32_t magic;
    CUgraphNodeType type;
    CUgraph graph;
    uint64_t ns; /* of a kernel */
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_HOST_NODE_PARAMS host;
    CUevent event;
    CUgraph child;
    struct allocation *memory; /* of an allocation node: its addresses; in use when the graph has run */
    CUdeviceptr freed;         /* of a free node */
    CUgraphNode *dependencies;
    size_t dependency_count;
    CUgraphNode next;
};

/* A graph that can be run. */
struct CUgraphExec_st {
    uint32_t magic;
    CUgraph graph; /* the original if it allocates memory, otherwise a copy of its own */
    bool owns_graph;
    unsigned long long flags;
    uint32_t reserved_mib; /* memory from its device's store since that was last trimmed */
    struct device *dev;    /* of its memory */
    CUgraphExec next;      /* of those that allocate, once they have run */
};

struct CUgraph_st {
    uint32_t magic, references; /* a graph that allocates is shared with what was instantiated from it */
    CUgraphNode first, *last;
    size_t count;
    struct graph_object *objects;
};

CUgraph graph_create(void);
bool graph_is_valid(CUgraph graph);
bool node_is_valid(CUgraphNode node);
CUgraphNode graph_add_node(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies, size_t count);
CUresult graph_add_kernel(CUgraph graph, const CUDA_KERNEL_NODE_PARAMS *params, const CUgraphNode *dependencies,
                          size_t count, CUgraphNode *out);
CUresult graph_add_allocation(CUgraph graph, struct device *dev, size_t size, const CUgraphNode *dependencies,
                              size_t count, CUgraphNode *out);

#endif
