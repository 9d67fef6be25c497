/* What a program may do with streams. */
#include "core/timeline.h"
#include "cuda/callback.h"
#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/event.h"
#include "cuda/ordered_free.h"
#include "cuda/pool.h"

#include <stdatomic.h>
#include <stdlib.h>

/* For calls that a capture does not allow. */
static CUresult resolve_uncaptured(CUstream handle, CUstream *stream)
{
    TRY(stream_resolve(handle, stream));
    return (*stream)->capture != NULL ? capture_invalidate((*stream)->capture) : CUDA_SUCCESS;
}

static int limit_priority(int priority)
{
    if (priority < STREAM_PRIORITY_GREATEST)
        return STREAM_PRIORITY_GREATEST;
    return priority > STREAM_PRIORITY_LEAST ? STREAM_PRIORITY_LEAST : priority;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (out == NULL || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    driver_lock();
    *stream = (struct CUstream_st){
        .ctx = ctx, .flags = flags, .priority = limit_priority(priority), .id = ++driver.next_id, .next = ctx->streams};
    ctx->streams = stream;
    driver_unlock();
    *out = stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
    return cuStreamCreateWithPriority(out, flags, 0);
}

/* The work of a destroyed stream continues. */
CUresult cuStreamDestroy_v2(CUstream stream)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (stream_is_default(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    callback_wait(stream);
    driver_lock();
    CUstream *at = &stream->ctx->streams;
    while (*at != NULL && *at != stream)
        at = &(*at)->next;
    bool found = *at == stream;
    if (found) {
        capture_forget(stream);
        *at = stream->next;
    }
    driver_unlock();
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    stream->ctx = NULL;
    free(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle)
{
    CUstream stream;
    TRY(resolve_uncaptured(handle, &stream));
    if (stream == &stream->ctx->legacy)
        stream_wait_all(stream->ctx);
    else
        stream_wait(stream);
    pool_trim_idle(stream->ctx->dev);
    return context_check_sound(stream->ctx);
}

CUresult cuStreamQuery(CUstream handle)
{
    CUstream stream;
    TRY(resolve_uncaptured(handle, &stream));
    uint32_t gpu = stream->ctx->dev->gpu;
    driver_lock();
    bool done =
        timeline_done(&driver.m, gpu, driver.slot, machine_now()) >= stream_end(stream) && callback_newest(stream) == 0;
    if (done)
        ordered_free_collect();
    driver_unlock();
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* On one GPU the queue's order already makes the stream wait. For another GPU's event, wait here. */
CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
    CUstream stream;
    (void)flags;
    TRY(stream_resolve(handle, &stream));
    if (event == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event_capture(event) != NULL)
        return capture_join(stream, event_capture(event));
    if (stream->capture != NULL)
        return capture_add_node(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    if (event_gpu(event) == stream->ctx->dev->gpu)
        event_hold(event, stream);
    else
        event_wait(event);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    *id = stream->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    *ctx = stream->ctx;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *ordinal)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    *ordinal = stream->ctx->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
    CUstream stream;
    TRY(stream_resolve(to, &stream));
    return stream_resolve(from, &stream);
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    if (function == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL)
        return capture_add_host(stream, function, data);
    return callback_enqueue(stream, function, NULL, data);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void *data, unsigned int flags)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    if (function == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return callback_enqueue(stream, NULL, function, data);
}
