#include "cuda/capture.h"

#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/graph.h"

#include <stdlib.h>

struct capture {
    CUgraph graph;
    CUstream origin;
    const void *thread; /* that began it */
    CUstreamCaptureMode mode;
    struct capture *next;
    unsigned long long id;
    bool invalidated;
    CUgraphNode newest; /* what the next node depends on */
};

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static struct capture *active; /* by the driver's lock */

void capture_after_fork(void)
{
    active = NULL;
}

static CUresult check(const struct capture *c)
{
    return c->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult capture_add_node(CUstream stream, CUgraphNodeType type)
{
    struct capture *c = stream->capture;
    TRY(check(c));
    CUgraphNode node = graph_add_node(c->graph, type, &c->newest, c->newest != NULL);
    if (node == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->newest = node;
    return CUDA_SUCCESS;
}

CUresult capture_add_kernel(CUstream stream, const CUDA_KERNEL_NODE_PARAMS *params)
{
    struct capture *c = stream->capture;
    CUgraphNode node;
    TRY(check(c));
    TRY(graph_add_kernel(c->graph, params, &c->newest, c->newest != NULL, &node));
    c->newest = node;
    return CUDA_SUCCESS;
}

CUresult capture_add_host(CUstream stream, CUhostFn function, void *data)
{
    TRY(capture_add_node(stream, CU_GRAPH_NODE_TYPE_HOST));
    stream->capture->newest->host = (CUDA_HOST_NODE_PARAMS){.fn = function, .userData = data};
    return CUDA_SUCCESS;
}

CUresult capture_add_child(CUstream stream, CUgraph graph)
{
    CUgraph copy;
    TRY(cuGraphClone(&copy, graph));
    TRY(capture_add_node(stream, CU_GRAPH_NODE_TYPE_GRAPH));
    stream->capture->newest->child = copy;
    return CUDA_SUCCESS;
}

CUresult capture_add_event(CUstream stream, CUevent event)
{
    TRY(capture_add_node(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD));
    stream->capture->newest->event = event;
    return CUDA_SUCCESS;
}

CUresult capture_add_allocation(CUstream stream, size_t size, CUdeviceptr *out)
{
    struct capture *c = stream->capture;
    CUgraphNode node;
    if (size == 0 || out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(graph_add_allocation(c->graph, stream->ctx->dev, size, &c->newest, c->newest != NULL, &node));
    c->newest = node;
    *out = node->memory->start;
    return CUDA_SUCCESS;
}

CUresult capture_add_free(CUstream stream, CUdeviceptr at)
{
    TRY(capture_add_node(stream, CU_GRAPH_NODE_TYPE_MEM_FREE));
    stream->capture->newest->freed = at;
    return CUDA_SUCCESS;
}

CUresult capture_join(CUstream stream, struct capture *c)
{
    if (stream->capture != NULL && stream->capture != c)
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    stream->capture = c;
    return CUDA_SUCCESS;
}

CUresult capture_invalidate(struct capture *c)
{
    c->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_check_absent(CUcontext ctx)
{
    CUresult result = CUDA_SUCCESS;
    driver_lock();
    for (CUstream s = ctx->streams; s != NULL && result == CUDA_SUCCESS; s = s->next)
        if (s->capture != NULL)
            result = capture_invalidate(s->capture);
    driver_unlock();
    return result;
}

/* A thread is known by its own variable. */
CUresult capture_check_safe(void)
{
    CUresult result = CUDA_SUCCESS;
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return result;
    driver_lock();
    for (struct capture *c = active; c != NULL; c = c->next) {
        bool others = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        bool own = c->thread == &thread_mode && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        if (own || others)
            result = capture_invalidate(c);
    }
    driver_unlock();
    return result;
}

static void deactivate(const struct capture *c)
{
    struct capture **at = &active;
    while (*at != NULL && *at != c)
        at = &(*at)->next;
    if (*at != NULL)
        *at = c->next;
}

void capture_forget(CUstream stream)
{
    if (stream->capture != NULL && stream->capture->origin == stream)
        deactivate(stream->capture);
}

static CUresult begin(CUstream handle, CUgraph graph, CUstreamCaptureMode mode)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream == &stream->ctx->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct capture *c = calloc(1, sizeof *c);
    if (c != NULL)
        c->graph = graph != NULL ? graph : graph_create();
    if (c == NULL || c->graph == NULL) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->origin = stream;
    c->thread = &thread_mode;
    c->mode = mode;
    driver_lock();
    c->next = active;
    active = c;
    c->id = ++driver.next_id;
    stream->capture = c;
    driver_unlock();
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return begin(stream, NULL, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode)
{
    (void)dependencies, (void)data, (void)count;
    return graph_is_valid(graph) ? begin(stream, graph, mode) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    struct capture *c = stream->capture;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (c == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    driver_lock();
    deactivate(c);
    for (CUcontext ctx = driver.contexts; ctx != NULL; ctx = ctx->next)
        for (CUstream s = ctx->streams; s != NULL; s = s->next)
            if (s->capture == c)
                s->capture = NULL;
    driver_unlock();
    /* Events that were recorded in it may still point to the capture, so it is kept. */
    *out = c->invalidated ? NULL : c->graph;
    return check(c);
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    if (status == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (stream->capture != NULL && stream->capture->invalidated)
        *status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    else if (stream->capture != NULL)
        *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count)
{
    CUstream stream;
    TRY(cuStreamIsCapturing(handle, status));
    TRY(stream_resolve(handle, &stream));
    struct capture *c = stream->capture;
    if (c == NULL)
        return CUDA_SUCCESS;
    if (id != NULL)
        *id = c->id;
    if (graph != NULL)
        *graph = c->graph;
    if (dependencies != NULL)
        *dependencies = &c->newest;
    if (edges != NULL)
        *edges = NULL;
    if (count != NULL)
        *count = c->newest != NULL;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **dependencies, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, NULL, count);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *dependencies, size_t count, unsigned int flags)
{
    CUstream stream;
    (void)flags;
    TRY(stream_resolve(handle, &stream));
    if (stream->capture == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (count > 0 && node_is_valid(dependencies[count - 1]))
        stream->capture->newest = dependencies[count - 1];
    return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *dependencies, const CUgraphEdgeData *data,
                                              size_t count, unsigned int flags)
{
    (void)data;
    return cuStreamUpdateCaptureDependencies(stream, dependencies, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    if (mode == NULL || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
