/* Graphs: lists of nodes in the order in which they were added, which is an order that respects every dependency. */
#ifndef SIMGPU_GRAPH_H
#define SIMGPU_GRAPH_H

#include "memory.h"

struct CUgraphNode_st {
    uint32_t magic;
    CUgraphNodeType type;
    CUgraph graph;
    uint64_t ns;                     /* of a kernel */
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_HOST_NODE_PARAMS host;
    CUevent event;
    CUgraph child;
    allocation *memory;              /* of an allocation node: its addresses; in use when the graph has run */
    CUdeviceptr freed;               /* of a free node */
    CUgraphNode *dependencies;
    size_t dependency_count;
    CUgraphNode next;
};

/* A graph that can be run. */
struct CUgraphExec_st {
    uint32_t magic;
    CUgraph graph;      /* the original while it allocates memory, else a copy of its own */
    bool owns_graph;
    unsigned long long flags;
    uint32_t mapped_mib; /* memory that it has found in its device's store since that was trimmed */
    device *dev;         /* of its memory */
    CUgraphExec next;    /* of those that allocate, once they have run */
};

struct CUgraph_st {
    uint32_t magic, references; /* a graph that allocates is shared with what was instantiated from it */
    CUgraphNode first, *last;
    size_t count;
};

CUgraph graph_new(void);
bool graph_valid(CUgraph graph);
bool node_valid(CUgraphNode node);
CUgraphNode graph_add(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies, size_t count);
CUresult graph_add_kernel(CUgraph graph, const CUDA_KERNEL_NODE_PARAMS *params, const CUgraphNode *dependencies,
                          size_t count, CUgraphNode *out);
CUresult graph_add_allocation(CUgraph graph, device *dev, size_t size, const CUgraphNode *dependencies, size_t count,
                              CUgraphNode *out);

/* Finds memory for what the graph's nodes hold at most at once; `freeing` what they left from the last time. */
CUresult graph_memory_map(CUgraphExec exec, bool freeing);
void graph_memory_take(allocation *a, CUcontext ctx);
void graph_memory_unmap(CUgraphExec exec);
/* The node goes; memory that is in use stays. */
void graph_memory_detach(allocation *a);

#endif
