#include "cuda/event.h"

#include "core/timeline.h"
#include "cuda/callback.h"
#include "cuda/capture.h"
#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/ordered_free.h"

#include <stdatomic.h>
#include <stdlib.h>

#define EVENT_MAGIC 0x45564e54

enum { MAX_FLAGS = 7, RECORD_EXTERNAL = 1, RECORD_NS = 1 };

struct CUevent_st {
    uint32_t magic, gpu;
    unsigned int flags;
    bool recorded;
    uint64_t position;
    uint64_t callback; /* the host function that it comes after; 0: none */
    uint64_t since;    /* when it was recorded */
    uint64_t when;     /* 0: not yet known */
    struct capture *capture;
};

struct capture *event_capture(CUevent event)
{
    return event->capture;
}

uint32_t event_gpu(CUevent event)
{
    return event->gpu;
}

static bool has_happened(CUevent event)
{
    if (!event->recorded || event->when != 0)
        return true;
    if (timeline_done(&driver.m, event->gpu, driver.slot, machine_now()) < event->position ||
        !callback_has_run(event->callback))
        return false;
    event->when = timeline_time_of(&driver.m, event->gpu, driver.slot, event->position, event->since);
    return true;
}

void event_wait(CUevent event)
{
    if (event->recorded) {
        timeline_wait(&driver.m, event->gpu, driver.slot, event->position);
        callback_wait_for(event->callback);
    }
}

void event_hold(CUevent event, CUstream stream)
{
    if (event->recorded && atomic_load(&stream->last) < event->position)
        atomic_store(&stream->last, event->position);
}

/* Nothing of a process happens in another's turn, nor in a turn of its own that began before it was submitted. So a
 * record after the latest work is work, too. */
static uint64_t position_of_record(uint32_t gpu, CUstream stream)
{
    uint64_t end = timeline_end(&driver.m, gpu, driver.slot);
    bool latest = stream == &stream->ctx->legacy || stream->last == end;
    if (latest || timeline_done(&driver.m, gpu, driver.slot, machine_now()) >= end)
        return timeline_append(&driver.m, gpu, driver.slot, RECORD_NS);
    return stream->last;
}

void event_record(CUevent event, CUstream stream)
{
    event->gpu = stream->ctx->dev->gpu;
    event->since = machine_now();
    event->position = position_of_record(event->gpu, stream);
    event->callback = callback_newest(stream);
    event->when = 0;
    event->capture = NULL;
    event->recorded = true;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (out == NULL || flags > MAX_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    CUevent event = calloc(1, sizeof *event);
    if (event == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->magic = EVENT_MAGIC;
    event->gpu = ctx->dev->gpu;
    event->flags = flags;
    *out = event;
    return CUDA_SUCCESS;
}

static CUresult check(CUevent event)
{
    TRY(driver_check_ready());
    return event != NULL && event->magic == EVENT_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* For calls about the moment of an event, which one that a capture recorded does not have. */
static CUresult check_uncaptured(CUevent event)
{
    TRY(check(event));
    return event->capture == NULL ? CUDA_SUCCESS : CUDA_ERROR_CAPTURED_EVENT;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    TRY(check(event));
    event->magic = 0;
    free(event);
    return CUDA_SUCCESS;
}

/* While a stream is capturing, an external event becomes a node of the graph; others are a fork of the capture. */
static CUresult record(CUevent event, CUstream handle, bool external)
{
    CUstream stream;
    TRY(check(event));
    TRY(stream_resolve(handle, &stream));
    if (stream->capture == NULL)
        event_record(event, stream);
    else if (external)
        return capture_add_event(stream, event);
    else
        event->capture = stream->capture;
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return record(event, stream, false);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    return record(event, stream, flags == RECORD_EXTERNAL);
}

CUresult cuEventQuery(CUevent event)
{
    TRY(check_uncaptured(event));
    TRY(capture_check_safe());
    if (!has_happened(event))
        return CUDA_ERROR_NOT_READY;
    driver_lock();
    ordered_free_collect();
    driver_unlock();
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
    TRY(check_uncaptured(event));
    event_wait(event);
    driver_lock();
    ordered_free_collect();
    driver_unlock();
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    TRY(check(start));
    TRY(check(end));
    if (ms == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) || !start->recorded || !end->recorded)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!has_happened(start) || !has_happened(end))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)((int64_t)end->when - (int64_t)start->when) / 1e6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
    return cuEventElapsedTime(ms, start, end);
}
