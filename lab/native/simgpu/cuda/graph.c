#include "cuda/graph.h"

#include "cuda/arena.h"
#include "cuda/driver.h"
#include "cuda/function.h"

#include <stdlib.h>
#include <string.h>

#define GRAPH_MAGIC 0x47525048
#define NODE_MAGIC 0x4e4f4445

bool graph_is_valid(CUgraph graph)
{
    return graph != NULL && graph->magic == GRAPH_MAGIC;
}

bool node_is_valid(CUgraphNode node)
{
    return node != NULL && node->magic == NODE_MAGIC;
}

CUgraph graph_create(void)
{
    CUgraph graph = calloc(1, sizeof *graph);
    if (graph == NULL)
        return NULL;
    graph->magic = GRAPH_MAGIC;
    graph->references = 1;
    graph->last = &graph->first;
    return graph;
}

CUgraphNode graph_add_node(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies, size_t count)
{
    CUgraphNode node = calloc(1, sizeof *node);
    CUgraphNode *copy = count > 0 ? malloc(count * sizeof *copy) : NULL;
    if (node == NULL || (count > 0 && copy == NULL)) {
        free(node);
        free(copy);
        return NULL;
    }
    if (count > 0)
        memcpy(copy, dependencies, count * sizeof *copy);
    *node = (struct CUgraphNode_st){
        .magic = NODE_MAGIC, .type = type, .graph = graph, .dependencies = copy, .dependency_count = count};
    *graph->last = node;
    graph->last = &node->next;
    graph->count++;
    return node;
}

CUresult graph_add_kernel(CUgraph graph, const CUDA_KERNEL_NODE_PARAMS *params, const CUgraphNode *dependencies,
                          size_t count, CUgraphNode *out)
{
    CUfunction f = params->func != NULL ? params->func : (CUfunction)params->kern;
    if (!function_is_valid(f))
        return CUDA_ERROR_INVALID_VALUE;
    *out = graph_add_node(graph, CU_GRAPH_NODE_TYPE_KERNEL, dependencies, count);
    if (*out == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->kernel = *params;
    (*out)->ns = function_read_duration(f, params->kernelParams, params->extra);
    return CUDA_SUCCESS;
}

/* The addresses are fixed now; memory is taken when the graph runs. */
CUresult graph_add_allocation(CUgraph graph, struct device *dev, size_t size, const CUgraphNode *dependencies,
                              size_t count, CUgraphNode *out)
{
    struct allocation *a = calloc(1, sizeof *a);
    driver_lock();
    CUdeviceptr start = a != NULL && size < MEMORY_MAX_BYTES ? arena_reserve(size) : 0;
    driver_unlock();
    *out = start != 0 ? graph_add_node(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, dependencies, count) : NULL;
    if (*out == NULL) {
        free(a);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *a = (struct allocation){.start = start, .size = size, .kind = KIND_GRAPH, .dev = dev, .extra = *out};
    (*out)->memory = a;
    return CUDA_SUCCESS;
}

/* The node is removed; memory that is in use stays. */
static void detach_memory(struct allocation *a)
{
    driver_lock();
    a->extra = NULL;
    if (a->charged_mib == 0) {
        arena_release(a->start, a->size);
        free(a);
    }
    driver_unlock();
}

static void free_node(CUgraphNode node)
{
    struct allocation *a = node->memory;
    if (a != NULL)
        detach_memory(a);
    node->magic = 0;
    free(node->dependencies);
    free(node);
}

CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
    TRY(driver_check_ready());
    if (out == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = graph_create();
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    if (!graph_is_valid(graph))
        return CUDA_ERROR_INVALID_VALUE;
    if (--graph->references > 0)
        return CUDA_SUCCESS;
    while (graph->first != NULL) {
        CUgraphNode node = graph->first;
        graph->first = node->next;
        free_node(node);
    }
    user_objects_release(&graph->objects);
    graph->magic = 0;
    free(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
    if (!node_is_valid(node))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraph graph = node->graph;
    CUgraphNode *at = &graph->first;
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    if (graph->last == &node->next)
        graph->last = at;
    graph->count--;
    free_node(node);
    return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *out, CUgraph original)
{
    if (out == NULL || !graph_is_valid(original))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraph copy = graph_create();
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (CUgraphNode node = original->first; node != NULL; node = node->next) {
        if (node->memory != NULL) {
            cuGraphDestroy(copy);
            return CUDA_ERROR_NOT_SUPPORTED; /* as in CUDA, graphs that allocate cannot be cloned */
        }
        CUgraphNode twin = graph_add_node(copy, node->type, NULL, 0);
        if (twin == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        twin->ns = node->ns;
        twin->kernel = node->kernel;
        twin->host = node->host;
        twin->event = node->event;
        twin->child = node->child;
    }
    if (!user_objects_copy(&copy->objects, original->objects)) {
        cuGraphDestroy(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = copy;
    return CUDA_SUCCESS;
}

/* Copies up to *room nodes and says how many there are. */
static CUresult list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *room, bool roots_only)
{
    size_t count = 0;
    if (!graph_is_valid(graph) || room == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        if (roots_only && node->dependency_count > 0)
            continue;
        if (nodes != NULL && count < *room)
            nodes[count] = node;
        count++;
    }
    if (nodes == NULL || count < *room)
        *room = count;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *room)
{
    return list_nodes(graph, nodes, room, false);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *room)
{
    return list_nodes(graph, nodes, room, true);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    if (!node_is_valid(node) || type == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *room)
{
    if (!node_is_valid(node) || room == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; out != NULL && i < node->dependency_count && i < *room; i++)
        out[i] = node->dependencies[i];
    *room = node->dependency_count;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    if (!graph_is_valid(graph))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (!node_is_valid(from[i]) || !node_is_valid(to[i]))
            return CUDA_ERROR_INVALID_VALUE;
        CUgraphNode node = to[i];
        CUgraphNode *more = realloc(node->dependencies, (node->dependency_count + 1) * sizeof *more);
        if (more == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        more[node->dependency_count++] = from[i];
        node->dependencies = more;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
    return graph_is_valid(graph) ? user_objects_retain(&graph->objects, object, count, flags)
                                 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    return graph_is_valid(graph) ? user_objects_drop(graph->objects, object, count) : CUDA_ERROR_INVALID_VALUE;
}
