#include "event.h"

#include <stdlib.h>
#include <time.h>

#include "capture.h"

#define EVENT_MAGIC 0x45564e54u

struct CUevent_st {
    uint32_t magic, gpu;
    unsigned int flags;
    bool recorded;
    uint64_t position, asked;   /* it cannot have happened before: nothing of a process happens in another's turn */
    uint64_t when;              /* 0: not yet known */
    struct capture *capture;
};

struct capture *event_capture(CUevent event) { return event->capture; }

uint32_t event_gpu(CUevent event) { return event->gpu; }

static bool happened(CUevent event) {
    if (!event->recorded || event->when != 0) return true;
    uint64_t now = machine_now();
    if (now < event->asked || timeline_done(&driver.m, event->gpu, driver.slot, now) < event->position) return false;
    uint64_t when = timeline_when(&driver.m, event->gpu, driver.slot, event->position, event->asked);
    event->when = when > event->asked ? when : event->asked;
    return true;
}

void event_wait(CUevent event) {
    if (!event->recorded) return;
    timeline_wait(&driver.m, event->gpu, driver.slot, event->position);
    struct timespec at = {.tv_sec = (time_t)(event->asked / 1000000000u), .tv_nsec = (long)(event->asked % 1000000000u)};
    while (machine_now() < event->asked) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

void event_set(CUevent event, CUstream stream) {
    event->gpu = stream->ctx->dev->gpu;
    event->asked = timeline_reaches(&driver.m, event->gpu, driver.slot, machine_now());
    event->position = stream == &stream->ctx->legacy ? timeline_end(&driver.m, event->gpu, driver.slot) : stream->last;
    event->when = 0;
    event->capture = NULL;
    event->recorded = true;
}

SIM_API CUresult cuEventCreate(CUevent *out, unsigned int flags) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (out == NULL || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    CUevent event = calloc(1, sizeof *event);
    if (event == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    event->magic = EVENT_MAGIC;
    event->gpu = ctx->dev->gpu;
    event->flags = flags;
    *out = event;
    return CUDA_SUCCESS;
}

static CUresult check(CUevent event) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    return event != NULL && event->magic == EVENT_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuEventDestroy_v2(CUevent event) {
    CUresult result = check(event);
    if (result != CUDA_SUCCESS) return result;
    event->magic = 0;
    free(event);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuEventRecord(CUevent event, CUstream handle) {
    CUstream stream;
    CUresult result = check(event);
    if (result == CUDA_SUCCESS) result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (stream->capture != NULL) {
        event->capture = stream->capture;
        return CUDA_SUCCESS;
    }
    event_set(event, stream);
    return CUDA_SUCCESS;
}

/* Flag 1, external, makes it a node of the graph instead of a fork of the capture. */
SIM_API CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned int flags) {
    CUstream stream;
    CUresult result = check(event);
    if (result == CUDA_SUCCESS) result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (stream->capture != NULL && flags == 1) return capture_event(stream, event);
    return cuEventRecord(event, handle);
}

SIM_API CUresult cuEventQuery(CUevent event) {
    CUresult result = check(event);
    if (result != CUDA_SUCCESS) return result;
    if (event->capture != NULL) return CUDA_ERROR_CAPTURED_EVENT;
    return happened(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_API CUresult cuEventSynchronize(CUevent event) {
    CUresult result = check(event);
    if (result != CUDA_SUCCESS) return result;
    if (event->capture != NULL) return CUDA_ERROR_CAPTURED_EVENT;
    event_wait(event);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    CUresult result = check(start);
    if (result == CUDA_SUCCESS) result = check(end);
    if (result != CUDA_SUCCESS) return result;
    if (ms == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) || !start->recorded || !end->recorded)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!happened(start) || !happened(end)) return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)((int64_t)end->when - (int64_t)start->when) / 1e6);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end) { return cuEventElapsedTime(ms, start, end); }
