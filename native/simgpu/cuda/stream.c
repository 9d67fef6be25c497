/* Streams. All streams of a process share its one queue on a GPU, so a stream is a position in that queue. */
#include <stdlib.h>

#include "callback.h"
#include "capture.h"
#include "event.h"
#include "memory.h"

CUresult stream_resolve(CUstream handle, CUstream *stream) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    bool is_default = handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
    *stream = is_default ? &ctx->legacy : handle;
    return (*stream)->ctx != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void stream_wait(CUstream stream) {
    timeline_wait(&driver.m, stream->ctx->dev->gpu, driver.slot, __atomic_load_n(&stream->last, __ATOMIC_SEQ_CST));
    callback_wait(stream);
}

void stream_destroy_all(CUcontext ctx) {
    while (ctx->streams != NULL) {
        CUstream stream = ctx->streams;
        ctx->streams = stream->next;
        stream->ctx = NULL;
        free(stream);
    }
}

CUresult stream_uncaptured(CUcontext ctx) {
    CUresult result = CUDA_SUCCESS;
    driver_lock();
    for (CUstream s = ctx->streams; s != NULL && result == CUDA_SUCCESS; s = s->next)
        if (s->capture != NULL) result = capture_forbid(s->capture);
    driver_unlock();
    return result;
}

SIM_API CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (out == NULL || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = calloc(1, sizeof *stream);
    if (stream == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    driver_lock();
    *stream = (struct CUstream_st){.ctx = ctx, .flags = flags, .priority = priority < -5 ? -5 : priority > 0 ? 0 : priority,
                                   .id = ++driver.next_id, .next = ctx->streams};
    ctx->streams = stream;
    driver_unlock();
    *out = stream;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamCreate(CUstream *out, unsigned int flags) { return cuStreamCreateWithPriority(out, flags, 0); }

/* The work of a destroyed stream goes on. */
SIM_API CUresult cuStreamDestroy_v2(CUstream stream) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return CUDA_ERROR_INVALID_HANDLE;
    callback_wait(stream);
    driver_lock();
    CUstream *at = &stream->ctx->streams;
    while (*at != NULL && *at != stream) at = &(*at)->next;
    bool found = *at == stream;
    if (found) *at = stream->next;
    driver_unlock();
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    stream->ctx = NULL;
    free(stream);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamSynchronize(CUstream handle) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (stream->capture != NULL) return capture_forbid(stream->capture);
    if (stream == &stream->ctx->legacy) context_finish(stream->ctx);
    else stream_wait(stream);
    pool_trim_idle(stream->ctx->dev);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamQuery(CUstream handle) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (stream->capture != NULL) return capture_forbid(stream->capture);
    uint32_t gpu = stream->ctx->dev->gpu;
    bool done = timeline_done(&driver.m, gpu, driver.slot, machine_now()) >= stream->last && stream->callbacks == 0;
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* On one GPU the queue's order already makes the stream wait. For another GPU's event, wait here. */
SIM_API CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    (void)flags;
    if (result != CUDA_SUCCESS) return result;
    if (event == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (event_capture(event) != NULL) return capture_join(stream, event_capture(event));
    if (stream->capture != NULL) return capture_node(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    if (event_gpu(event) != stream->ctx->dev->gpu) event_wait(event);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamGetPriority(CUstream handle, int *priority) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result == CUDA_SUCCESS) *priority = stream->priority;
    return result;
}

SIM_API CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result == CUDA_SUCCESS) *flags = stream->flags;
    return result;
}

SIM_API CUresult cuStreamGetId(CUstream handle, unsigned long long *id) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result == CUDA_SUCCESS) *id = stream->id;
    return result;
}

SIM_API CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result == CUDA_SUCCESS) *ctx = stream->ctx;
    return result;
}

SIM_API CUresult cuStreamGetDevice(CUstream handle, CUdevice *ordinal) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result == CUDA_SUCCESS) *ordinal = stream->ctx->ordinal;
    return result;
}

SIM_API CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
    CUstream stream;
    CUresult result = stream_resolve(to, &stream);
    return result == CUDA_SUCCESS ? stream_resolve(from, &stream) : result;
}
