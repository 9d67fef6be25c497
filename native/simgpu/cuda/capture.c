#include "capture.h"

#include <stdlib.h>

#include "graph.h"

struct capture {
    CUgraph graph;
    CUstream origin;
    unsigned long long id;
    bool spoiled;
    CUgraphNode newest; /* what the next node depends on */
};

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static CUresult added(CUstream stream, CUgraphNode node) {
    if (node == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    stream->capture->newest = node;
    return CUDA_SUCCESS;
}

static CUgraphNode add(CUstream stream, int type) {
    capture *c = stream->capture;
    return graph_add(c->graph, type, &c->newest, c->newest != NULL);
}

CUresult capture_node(CUstream stream, int type) {
    return stream->capture->spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : added(stream, add(stream, type));
}

CUresult capture_kernel(CUstream stream, const CUDA_KERNEL_NODE_PARAMS *params) {
    capture *c = stream->capture;
    CUgraphNode node = NULL;
    if (c->spoiled) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUresult result = graph_add_kernel(c->graph, params, &c->newest, c->newest != NULL, &node);
    return result == CUDA_SUCCESS ? added(stream, node) : result;
}

CUresult capture_host(CUstream stream, CUhostFn function, void *data) {
    CUresult result = capture_node(stream, CU_GRAPH_NODE_TYPE_HOST);
    if (result == CUDA_SUCCESS) stream->capture->newest->host = (CUDA_HOST_NODE_PARAMS){.fn = function, .userData = data};
    return result;
}

CUresult capture_child(CUstream stream, CUgraph graph) {
    CUgraph copy;
    CUresult result = cuGraphClone(&copy, graph);
    if (result == CUDA_SUCCESS) result = capture_node(stream, CU_GRAPH_NODE_TYPE_GRAPH);
    if (result == CUDA_SUCCESS) stream->capture->newest->child = copy;
    return result;
}

CUresult capture_event(CUstream stream, CUevent event) {
    CUresult result = capture_node(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    if (result == CUDA_SUCCESS) stream->capture->newest->event = event;
    return result;
}

CUresult capture_allocate(CUstream stream, size_t size, CUdeviceptr *out) {
    capture *c = stream->capture;
    CUgraphNode node = NULL;
    if (size == 0 || out == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_add_allocation(c->graph, stream->ctx->dev, size, &c->newest, c->newest != NULL, &node);
    if (result != CUDA_SUCCESS) return result;
    *out = node->memory->start;
    return added(stream, node);
}

CUresult capture_free(CUstream stream, CUdeviceptr at) {
    CUresult result = capture_node(stream, CU_GRAPH_NODE_TYPE_MEM_FREE);
    if (result == CUDA_SUCCESS) stream->capture->newest->freed = at;
    return result;
}

CUresult capture_join(CUstream stream, capture *c) {
    if (stream->capture != NULL && stream->capture != c) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    stream->capture = c;
    return CUDA_SUCCESS;
}

CUresult capture_forbid(capture *c) {
    c->spoiled = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static CUresult begin(CUstream handle, CUgraph graph, CUstreamCaptureMode mode) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream == &stream->ctx->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != NULL) return CUDA_ERROR_ILLEGAL_STATE;
    capture *c = calloc(1, sizeof *c);
    if (c != NULL) c->graph = graph != NULL ? graph : graph_new();
    if (c == NULL || c->graph == NULL) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->origin = stream;
    driver_lock();
    c->id = ++driver.next_id;
    stream->capture = c;
    driver_unlock();
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) { return begin(stream, NULL, mode); }

SIM_API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                             const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode) {
    (void)dependencies, (void)data, (void)count;
    return graph_valid(graph) ? begin(stream, graph, mode) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuStreamEndCapture(CUstream handle, CUgraph *out) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    capture *c = stream->capture;
    if (out == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (c == NULL) return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    driver_lock();
    for (CUcontext ctx = driver.contexts; ctx != NULL; ctx = ctx->next)
        for (CUstream s = ctx->streams; s != NULL; s = s->next)
            if (s->capture == c) s->capture = NULL;
    driver_unlock();
    *out = c->spoiled ? NULL : c->graph;
    result = c->spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    /* Events that were recorded in it may still point at the capture, so it stays. */
    return result;
}

SIM_API CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (status == NULL) return CUDA_ERROR_INVALID_VALUE;
    *status = stream->capture == NULL    ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->spoiled ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                         : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                           const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count) {
    CUstream stream;
    CUresult result = cuStreamIsCapturing(handle, status);
    if (result == CUDA_SUCCESS) result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS || stream->capture == NULL) return result;
    capture *c = stream->capture;
    if (id != NULL) *id = c->id;
    if (graph != NULL) *graph = c->graph;
    if (dependencies != NULL) *dependencies = &c->newest;
    if (edges != NULL) *edges = NULL;
    if (count != NULL) *count = c->newest != NULL;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                           const CUgraphNode **dependencies, size_t *count) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, NULL, count);
}

SIM_API CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

SIM_API CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *dependencies, size_t count,
                                                   unsigned int flags) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    (void)flags;
    if (result != CUDA_SUCCESS) return result;
    if (stream->capture == NULL) return CUDA_ERROR_ILLEGAL_STATE;
    if (count > 0 && node_valid(dependencies[count - 1])) stream->capture->newest = dependencies[count - 1];
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *dependencies,
                                                      const CUgraphEdgeData *data, size_t count, unsigned int flags) {
    (void)data;
    return cuStreamUpdateCaptureDependencies(stream, dependencies, count, flags);
}

SIM_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    if (mode == NULL || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
