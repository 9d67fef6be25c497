#include "compute/meters.h"

#include "compute/bucket.h"
#include "compute/estimate.h"
#include "compute/signals.h"
#include "compute/time_share.h"
#include "cuda/hooks.h"
#include "shared/assertion.h"

#include <pthread.h>
#include <stdlib.h>

enum { SPARE_EVENTS = 32 };
#define FAR_NS 1000000000.0

struct meter {
    struct meter *next;
    CUcontext context;
    int device;
    CUevent anchor;       /* other events are timed relative to this one */
    uint64_t anchor_time; /* when it happened, by our clock, as far as is known */
    CUevent spare[SPARE_EVENTS];
    unsigned spares;
    struct batch *batches;
    struct meter_state state;
    struct estimate estimate;
    uint64_t done_at; /* when the last batch was done */
};

struct batch {
    struct batch *next;
    struct meter *meter; /* NULL once the batch is settled */
    CUstream stream;
    CUevent start, end;                      /* both NULL: measured by the clock */
    uint64_t opened, ready, closed, charged; /* none of it runs before `ready` */
    uint32_t launches;
    bool owned, ended;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* All of these, the meters and their batches, by the lock. */
static struct meter *meters;
static struct spans worked[LAMINA_MAX_DEVICES];
static uint64_t busy_since[LAMINA_MAX_DEVICES];    /* 0: it has no work there */
static uint64_t counted_until[LAMINA_MAX_DEVICES]; /* up to when that was noted */

void meters_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    meters = NULL; /* not freed: the events in them are the parent's */
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++) {
        worked[device].count = 0;
        busy_since[device] = 0;
    }
}

static CUevent take_event(struct meter *meter)
{
    CUevent event = NULL;
    if (meter->spares > 0)
        return meter->spare[--meter->spares];
    return REAL(cuEventCreate)(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS ? event : NULL;
}

static void give_event_back(struct meter *meter, CUevent event)
{
    ASSERT(meter->spares <= SPARE_EVENTS);
    if (event == NULL)
        return;
    if (meter->spares < SPARE_EVENTS)
        meter->spare[meter->spares++] = event;
    else
        REAL(cuEventDestroy_v2)(event);
}

static struct meter *meter_of(CUcontext context, int device)
{
    ASSERT(context != NULL);
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    struct meter *meter = meters;
    while (meter != NULL && meter->context != context)
        meter = meter->next;
    if (meter == NULL && (meter = calloc(1, sizeof *meter)) != NULL) {
        *meter = (struct meter){.next = meters, .context = context, .device = device};
        meters = meter;
    }
    return meter;
}

/* Corrects the anchor's time by an event `ns` after it that happened between `not_before`, when it was recorded, and
 * `not_after`, when it was seen to be done. An event on an idle stream happens as it is recorded, so over time the
 * first bound becomes exact.
 *
 * Example: the anchor is thought to be at 1000. An event 500 after it was recorded at 1600, so it cannot have happened
 * at 1500, and the anchor is at 1100 or later. */
static void correct_anchor(struct meter *meter, double ns, uint64_t not_before, uint64_t not_after)
{
    if (meter->anchor_time + (uint64_t)ns < not_before)
        meter->anchor_time = not_before - (uint64_t)ns;
    if (meter->anchor_time + (uint64_t)ns > not_after)
        meter->anchor_time = not_after - (uint64_t)ns;
}

/* A float of milliseconds is precise enough only for a few seconds, so the anchor moves on. */
static void move_anchor(struct meter *meter, CUevent *event, double ns)
{
    if (ns < FAR_NS)
        return;
    CUevent before = meter->anchor;
    meter->anchor = *event;
    meter->anchor_time += (uint64_t)ns;
    *event = before;
}

static bool measure_by_events(struct meter *meter, struct batch *batch, uint64_t now, struct span *span)
{
    float from, to;
    if (REAL(cuEventElapsedTime)(&from, meter->anchor, batch->start) != CUDA_SUCCESS ||
        REAL(cuEventElapsedTime)(&to, meter->anchor, batch->end) != CUDA_SUCCESS || from < 0 || to < from)
        return false;
    double from_ns = from * 1e6, to_ns = to * 1e6;
    correct_anchor(meter, from_ns, batch->opened, now);
    correct_anchor(meter, to_ns, batch->closed, now);
    *span = (struct span){meter->anchor_time + (uint64_t)from_ns, meter->anchor_time + (uint64_t)to_ns};
    if (span->from < batch->ready)
        span->from = batch->ready < span->to ? batch->ready : span->to;
    move_anchor(meter, &batch->end, to_ns);
    return true;
}

static void learn_launch_time(struct meter_state *state, uint64_t ns, uint32_t launches)
{
    uint64_t each = ns / (launches > 0 ? launches : 1);
    uint64_t weight = each < state->each ? 2 : 4; /* turns of others make it longer, and nothing makes it shorter */
    state->each = state->known ? state->each - state->each / weight + each / weight : each;
    state->known = true;
}

/* Adds work in a span to the usage file and returns how much of it the container is charged. `certain` and `sparse` are
 * those of estimate.h. Only the first `alone` ns of the span surely belonged to this process alone: all of it if that
 * is certain; otherwise a whole turn if the span is longer than two turns, because work begins in a turn of its own.
 *
 * Example: the work of a span of 10 ms is not certain, because another container may have had turns in it. The first 2
 * ms are added as brief work, which was surely this process's own. The other 8 ms are added as work that may overlap
 * with that of other processes in the container, so the bins charge the overlap once. */
static uint64_t add_work(struct meter *meter, struct span span, uint64_t now, uint64_t work, bool certain, bool sparse)
{
    struct span fresh[SPANS + 1] = {span};
    uint64_t charged = 0, length = span.to - span.from, alone = 0;
    double density = length > 0 ? (double)work / (double)length : 0;
    if (certain)
        alone = length;
    else if (length > 2 * TURN_NS && !spans_touch(&worked[meter->device], span.from))
        alone = TURN_NS; /* work that joins earlier work of this process begins in the middle of a turn */
    /* Streams of this process may work at once: only what no other span covers is new. Sparse work has gaps, so its
     * span covers nothing. */
    unsigned parts = sparse ? 1 : spans_add(&worked[meter->device], span.from, span.to, fresh);
    for (unsigned i = 0; i < parts; i++) {
        uint64_t from = fresh[i].from, to = fresh[i].to, turns = span.from + alone;
        if (turns < from)
            turns = from;
        else if (turns > to)
            turns = to;
        charged += time_share_add_work(meter->device, now, from, turns, density, true);
        charged += time_share_add_work(meter->device, now, turns, to, density, false);
    }
    return charged;
}

/* The GPU has done the batch, or it will never be known better when. */
static void settle_batch(struct meter *meter, struct batch *batch, uint64_t now)
{
    ASSERT(batch->meter == meter);
    struct span span = {batch->opened, now};
    bool timed = batch->end != NULL && measure_by_events(meter, batch, now, &span), certain = false, sparse = false;
    uint64_t work = span.to - span.from, charged;
    if (timed) {
        struct measured measured = {work, span.to > batch->closed ? span.to - batch->closed : 0, batch->launches};
        estimate_learn(&meter->estimate, measured);
        sparse = estimate_is_sparse(&meter->estimate, measured);
        work = estimate_work(&meter->estimate, measured, &certain);
    }
    ASSERT(span.from <= span.to);
    ASSERT(work <= span.to - span.from);
    meter->done_at = span.to > meter->done_at ? span.to : meter->done_at;
    charged = add_work(meter, span, now, work, certain, sparse);
    time_share_correct(meter->device, now, (int64_t)(charged - batch->charged));
    if (timed || meter->state.known == false)
        learn_launch_time(&meter->state, work, batch->launches);
    time_share_note_launch(meter->device, meter->state.each);
    give_event_back(meter, batch->start);
    give_event_back(meter, batch->end);
    batch->meter = NULL;
}

static bool is_done(const struct batch *batch)
{
    CUresult result = batch->end != NULL ? REAL(cuEventQuery)(batch->end) : REAL(cuStreamQuery)(batch->stream);
    return result != CUDA_ERROR_NOT_READY;
}

/* Settles the batches that are done; with `all` every batch. */
static void collect_batches(struct meter *meter, uint64_t now, bool all)
{
    struct batch **link = &meter->batches;
    while (*link != NULL) {
        struct batch *batch = *link;
        if (!all && (!batch->ended || !is_done(batch))) {
            link = &batch->next;
            continue;
        }
        *link = batch->next;
        ASSERT(batch->ended ? meter->state.unfinished > 0 : meter->state.open > 0);
        if (batch->ended)
            meter->state.unfinished--;
        else
            meter->state.open--;
        settle_batch(meter, batch, now);
        if (!batch->owned)
            free(batch);
    }
}

static void update_busy(int device, uint64_t now)
{
    bool working = false;
    for (struct meter *meter = meters; meter != NULL; meter = meter->next)
        working = working || (meter->device == device && meter->batches != NULL);
    if (busy_since[device] != 0 && now > counted_until[device])
        time_share_note_occupied(device, now - counted_until[device]);
    counted_until[device] = now;
    if (working == (busy_since[device] != 0))
        return;
    busy_since[device] = working ? now : 0;
    time_share_note_busy(device, busy_since[device]);
    signal_work(device, working, now);
}

/* What the batches say that the GPU has not done. They are done one after the other. */
static void add_batches(struct meter_state *state, const struct meter *meter, uint64_t now)
{
    uint64_t charged = 0, begun = UINT64_MAX;
    for (const struct batch *batch = meter->batches; batch != NULL; batch = batch->next) {
        charged += batch->charged;
        begun = batch->opened < begun ? batch->opened : begun;
        if (batch->ended && batch->closed + PATIENCE_NS <= now) {
            state->unfinished--;
            state->late = true;
        }
    }
    state->pending = charged;
    state->ends = charged + (begun > meter->done_at ? begun : meter->done_at);
}

struct meter_state meter_read(CUcontext context, int device, uint64_t now)
{
    struct meter_state state = {.known = true};
    pthread_mutex_lock(&lock);
    struct meter *meter = meter_of(context, device);
    if (meter != NULL) {
        collect_batches(meter, now, false);
        update_busy(device, now);
        state = meter->state;
        add_batches(&state, meter, now);
    }
    pthread_mutex_unlock(&lock);
    return state;
}

static bool record_start(struct meter *meter, struct batch *batch)
{
    if (meter->anchor == NULL && (meter->anchor = take_event(meter)) != NULL) {
        meter->anchor_time = batch->opened;
        if (REAL(cuEventRecord)(meter->anchor, batch->stream) != CUDA_SUCCESS) {
            give_event_back(meter, meter->anchor);
            meter->anchor = NULL;
        }
    }
    if (meter->anchor != NULL)
        batch->start = take_event(meter);
    if (batch->start == NULL || REAL(cuEventRecord)(batch->start, batch->stream) != CUDA_SUCCESS)
        return false;
    batch->ready = monotonic_ns();
    return (batch->end = take_event(meter)) != NULL;
}

static void measure_by_clock(struct batch *batch)
{
    give_event_back(batch->meter, batch->start);
    give_event_back(batch->meter, batch->end);
    batch->start = batch->end = NULL;
}

struct batch *meter_open(CUcontext context, int device, CUstream stream, uint64_t now, uint64_t charged)
{
    struct batch *batch = calloc(1, sizeof *batch);
    pthread_mutex_lock(&lock);
    struct meter *meter = batch == NULL ? NULL : meter_of(context, device);
    if (meter != NULL) {
        *batch = (struct batch){
            .next = meter->batches, .meter = meter, .stream = stream, .opened = now, .charged = charged, .owned = true};
        meter->batches = batch;
        meter->state.open++;
        if (!record_start(meter, batch))
            measure_by_clock(batch);
        update_busy(device, now);
    } else {
        free(batch);
        batch = NULL;
    }
    pthread_mutex_unlock(&lock);
    return batch;
}

/* Ends the batch by an event, or by the clock: an event that cannot be recorded would have its former time. */
static void end_batch(struct batch *batch)
{
    ASSERT(!batch->ended && batch->meter->state.open > 0);
    batch->closed = monotonic_ns();
    if (batch->end != NULL &&
        (meter_is_capturing(batch->stream) || REAL(cuEventRecord)(batch->end, batch->stream) != CUDA_SUCCESS))
        measure_by_clock(batch);
    batch->ended = true;
    batch->meter->state.open--;
    batch->meter->state.unfinished++;
}

void meter_close(struct batch *batch, uint32_t launches)
{
    ASSERT(batch->owned);
    pthread_mutex_lock(&lock);
    batch->owned = false;
    batch->launches = launches;
    if (batch->meter == NULL)
        free(batch);
    else if (!batch->ended)
        end_batch(batch);
    pthread_mutex_unlock(&lock);
}

void meter_end_stream(CUstream stream)
{
    pthread_mutex_lock(&lock);
    for (struct meter *meter = meters; meter != NULL; meter = meter->next)
        for (struct batch *batch = meter->batches; batch != NULL; batch = batch->next)
            if (batch->stream == stream) {
                if (!batch->ended)
                    end_batch(batch);
                batch->stream = NULL; /* the legacy stream, which is idle only after all others */
            }
    pthread_mutex_unlock(&lock);
}

void meter_end_context(CUcontext context)
{
    pthread_mutex_lock(&lock);
    for (struct meter **link = &meters; *link != NULL;) {
        struct meter *meter = *link;
        if (meter->context != context) {
            link = &meter->next;
            continue;
        }
        uint64_t now = monotonic_ns();
        collect_batches(meter, now, true);
        *link = meter->next;
        update_busy(meter->device, now);
        give_event_back(meter, meter->anchor);
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
    return result == CUDA_SUCCESS
             ? status != CU_STREAM_CAPTURE_STATUS_NONE
             : result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_CAPTURED_EVENT;
}
