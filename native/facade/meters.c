#include "meters.h"

#include "bucket.h"
#include "estimate.h"
#include "launches.h"
#include "time_share.h"

#include <pthread.h>
#include <stdlib.h>

enum { SPARE_EVENTS = 32 };
#define FAR_NS 1000000000.0

struct meter {
    struct meter *next;
    CUcontext context;
    int device;
    CUevent anchor;    /* events are timed against this one */
    uint64_t anchored; /* when that was, by our clock, as well as is known */
    CUevent spare[SPARE_EVENTS];
    unsigned spares;
    struct batch *batches;
    struct meter_state state;
    struct estimate estimate;
};

struct batch {
    struct batch *next;
    struct meter *meter; /* NULL once it is reckoned */
    CUstream stream;
    CUevent start, end; /* both NULL: by the clock */
    uint64_t opened, ready, closed, announced; /* nothing of it runs before it is ready */
    uint32_t launches;
    bool owned, ended;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct meter *meters;
static struct spans worked[LAMINA_MAX_DEVICES];
static uint64_t busy[LAMINA_MAX_DEVICES]; /* since when, or 0 */

void meters_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    meters = NULL; /* the parent's; what they hold is not this process's */
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++) {
        worked[device].count = 0;
        busy[device] = 0;
    }
}

static CUevent event_take(struct meter *meter)
{
    CUevent event = NULL;
    if (meter->spares > 0)
        return meter->spare[--meter->spares];
    return REAL(cuEventCreate)(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS ? event : NULL;
}

static void event_give(struct meter *meter, CUevent event)
{
    if (event == NULL)
        return;
    if (meter->spares < SPARE_EVENTS)
        meter->spare[meter->spares++] = event;
    else
        REAL(cuEventDestroy_v2)(event);
}

static struct meter *meter_of(CUcontext context, int device)
{
    struct meter *meter = meters;
    while (meter != NULL && meter->context != context)
        meter = meter->next;
    if (meter == NULL && (meter = calloc(1, sizeof *meter)) != NULL) {
        *meter = (struct meter){.next = meters, .context = context, .device = device};
        meters = meter;
    }
    return meter;
}

/* An event was recorded at `not_before` at the earliest and had happened by `not_after`: so far can our idea of the
 * GPU's clock be off. An event on an idle stream happens as it is recorded, which makes the first bound sharp. */
static void adjust(struct meter *meter, double ns, uint64_t not_before, uint64_t not_after)
{
    if (meter->anchored + (uint64_t)ns < not_before)
        meter->anchored = not_before - (uint64_t)ns;
    if (meter->anchored + (uint64_t)ns > not_after)
        meter->anchored = not_after - (uint64_t)ns;
}

/* A float of milliseconds is exact enough for seconds only, so the anchor follows. */
static void move_anchor(struct meter *meter, CUevent *event, double ns)
{
    if (ns < FAR_NS)
        return;
    CUevent before = meter->anchor;
    meter->anchor = *event;
    meter->anchored += (uint64_t)ns;
    *event = before;
}

static bool by_events(struct meter *meter, struct batch *batch, uint64_t now, struct span *span)
{
    float from, to;
    if (REAL(cuEventElapsedTime)(&from, meter->anchor, batch->start) != CUDA_SUCCESS ||
        REAL(cuEventElapsedTime)(&to, meter->anchor, batch->end) != CUDA_SUCCESS || from < 0 || to < from)
        return false;
    double from_ns = from * 1e6, to_ns = to * 1e6;
    adjust(meter, from_ns, batch->opened, now);
    adjust(meter, to_ns, batch->closed, now);
    *span = (struct span){meter->anchored + (uint64_t)from_ns, meter->anchored + (uint64_t)to_ns};
    if (span->from < batch->ready)
        span->from = batch->ready < span->to ? batch->ready : span->to;
    move_anchor(meter, &batch->end, to_ns);
    return true;
}

static void learn(struct meter_state *state, uint64_t ns, uint32_t launches)
{
    uint64_t each = ns / (launches > 0 ? launches : 1);
    state->each = state->known ? state->each - state->each / 4 + each / 4 : each;
    state->known = true;
}

/* Tells of work in a span. Returns for how much of it the container is charged. Work begins in a turn of its own, and if
 * it takes longer than two turns that was a whole one. */
static uint64_t tell(struct meter *meter, struct span span, uint64_t now, uint64_t work, bool sure, bool sparse)
{
    struct span fresh[SPANS + 1] = {span};
    uint64_t charged = 0, length = span.to - span.from, alone = sure ? length : length > 2 * TURN_NS ? TURN_NS : 0;
    double density = length > 0 ? (double)work / (double)length : 0;
    if (!sure && spans_touch(&worked[meter->device], span.from))
        alone = 0;
    unsigned parts = sparse ? 1 : spans_add(&worked[meter->device], span.from, span.to, fresh);
    for (unsigned i = 0; i < parts; i++) {
        uint64_t from = fresh[i].from, to = fresh[i].to, turns = span.from + alone;
        turns = turns < from ? from : turns > to ? to : turns;
        charged += share_worked(meter->device, now, from, turns, density, true);
        charged += share_worked(meter->device, now, turns, to, density, false);
    }
    return charged;
}

/* The GPU has done the batch, or nobody will know better when. */
static void reckon(struct meter *meter, struct batch *batch, uint64_t now)
{
    struct span span = {batch->opened, now};
    bool timed = batch->end != NULL && by_events(meter, batch, now, &span), sure = false, sparse = false;
    uint64_t work = span.to - span.from, charged;
    if (timed) {
        struct measured measured = {work, span.to > batch->closed ? span.to - batch->closed : 0, batch->launches};
        estimate_learn(&meter->estimate, measured);
        sparse = estimate_sparse(&meter->estimate, measured);
        work = estimate_work(&meter->estimate, measured, &sure);
    }
    charged = tell(meter, span, now, work, sure, sparse);
    share_correct(meter->device, now, (int64_t)(charged - batch->announced));
    if (timed || meter->state.known == false)
        learn(&meter->state, work, batch->launches);
    event_give(meter, batch->start);
    event_give(meter, batch->end);
    batch->meter = NULL;
}

static bool done(const struct batch *batch)
{
    CUresult result = batch->end != NULL ? REAL(cuEventQuery)(batch->end) : REAL(cuStreamQuery)(batch->stream);
    return result != CUDA_ERROR_NOT_READY;
}

/* Reckons what is done, or with `all` everything. */
static void harvest(struct meter *meter, uint64_t now, bool all)
{
    struct batch **link = &meter->batches;
    while (*link != NULL) {
        struct batch *batch = *link;
        if (!all && (!batch->ended || !done(batch))) {
            link = &batch->next;
            continue;
        }
        *link = batch->next;
        if (batch->ended)
            meter->state.unfinished--;
        else
            meter->state.open--;
        reckon(meter, batch, now);
        if (!batch->owned)
            free(batch);
    }
}

static void tell_busy(int device, uint64_t now)
{
    bool working = false;
    for (struct meter *meter = meters; meter != NULL; meter = meter->next)
        working = working || (meter->device == device && meter->batches != NULL);
    if (working == (busy[device] != 0))
        return;
    busy[device] = working ? now : 0;
    share_busy(device, busy[device]);
}

struct meter_state meter_read(CUcontext context, int device, uint64_t now)
{
    struct meter_state state = {.known = true};
    pthread_mutex_lock(&lock);
    struct meter *meter = meter_of(context, device);
    if (meter != NULL) {
        harvest(meter, now, false);
        tell_busy(device, now);
        state = meter->state;
        for (const struct batch *batch = meter->batches; batch != NULL; batch = batch->next)
            if (batch->ended && batch->closed + PATIENCE_NS <= now) {
                state.unfinished--;
                state.late = true;
            }
    }
    pthread_mutex_unlock(&lock);
    return state;
}

static bool record_start(struct meter *meter, struct batch *batch)
{
    if (meter->anchor == NULL && (meter->anchor = event_take(meter)) != NULL) {
        meter->anchored = batch->opened;
        if (REAL(cuEventRecord)(meter->anchor, batch->stream) != CUDA_SUCCESS) {
            event_give(meter, meter->anchor);
            meter->anchor = NULL;
        }
    }
    if (meter->anchor != NULL)
        batch->start = event_take(meter);
    if (batch->start == NULL || REAL(cuEventRecord)(batch->start, batch->stream) != CUDA_SUCCESS)
        return false;
    batch->ready = share_now();
    return (batch->end = event_take(meter)) != NULL;
}

static void by_clock(struct batch *batch)
{
    event_give(batch->meter, batch->start);
    event_give(batch->meter, batch->end);
    batch->start = batch->end = NULL;
}

struct batch *meter_open(CUcontext context, int device, CUstream stream, uint64_t now, uint64_t announced)
{
    struct batch *batch = calloc(1, sizeof *batch);
    pthread_mutex_lock(&lock);
    struct meter *meter = batch == NULL ? NULL : meter_of(context, device);
    if (meter != NULL) {
        *batch = (struct batch){.next = meter->batches, .meter = meter, .stream = stream, .opened = now,
                                .announced = announced, .owned = true};
        meter->batches = batch;
        meter->state.open++;
        if (!record_start(meter, batch))
            by_clock(batch);
        tell_busy(device, now);
    } else {
        free(batch);
        batch = NULL;
    }
    pthread_mutex_unlock(&lock);
    return batch;
}

/* An event that is not recorded now would tell an earlier time. */
static void end(struct batch *batch)
{
    batch->closed = share_now();
    if (batch->end != NULL &&
        (meter_is_capturing(batch->stream) || REAL(cuEventRecord)(batch->end, batch->stream) != CUDA_SUCCESS))
        by_clock(batch);
    batch->ended = true;
    batch->meter->state.open--;
    batch->meter->state.unfinished++;
}

void meter_close(struct batch *batch, uint32_t launches)
{
    pthread_mutex_lock(&lock);
    batch->owned = false;
    batch->launches = launches;
    if (batch->meter == NULL)
        free(batch);
    else if (!batch->ended)
        end(batch);
    pthread_mutex_unlock(&lock);
}

void meter_stream_ends(CUstream stream)
{
    pthread_mutex_lock(&lock);
    for (struct meter *meter = meters; meter != NULL; meter = meter->next)
        for (struct batch *batch = meter->batches; batch != NULL; batch = batch->next)
            if (batch->stream == stream) {
                if (!batch->ended)
                    end(batch);
                batch->stream = NULL; /* which is idle only after all others */
            }
    pthread_mutex_unlock(&lock);
}

void meter_context_ends(CUcontext context)
{
    pthread_mutex_lock(&lock);
    for (struct meter **link = &meters; *link != NULL;) {
        struct meter *meter = *link;
        if (meter->context != context) {
            link = &meter->next;
            continue;
        }
        uint64_t now = share_now();
        harvest(meter, now, true);
        *link = meter->next;
        tell_busy(meter->device, now);
        event_give(meter, meter->anchor);
        while (meter->spares > 0)
            REAL(cuEventDestroy_v2)(meter->spare[--meter->spares]);
        free(meter);
    }
    pthread_mutex_unlock(&lock);
}

bool meter_is_capturing(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = REAL(cuStreamIsCapturing)(stream, &status);
    return result == CUDA_SUCCESS ? status != CU_STREAM_CAPTURE_STATUS_NONE
                                  : result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_CAPTURED_EVENT;
}
