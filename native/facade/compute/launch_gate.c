#include "compute/launch_gate.h"

#include "compute/bucket.h"
#include "compute/launch_window.h"
#include "compute/meters.h"
#include "compute/signals.h"
#include "compute/time_share.h"
#include "cuda/context_table.h"
#include "cuda/hooks.h"
#include "shared/assertion.h"
#include "shared/facade.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define UNMEASURED UINT32_MAX
#define UNDECIDED 64 /* launches after which to check whether the arbiter decides again */
/* Batches that the GPU has not done, not counting open ones. Next to others a batch is done in one of the container's
 * turns, and the program knows in the next one, so with two the container has no work in some of its turns. With more,
 * it takes longer to stop, so more are allowed only where together they take MORE_NS. What a batch of many launches
 * took is less exact when several wait. Small batches may be as many as take QUEUED_NS together: the GPU goes to
 * another process when a queue is empty, so work of less than a turn would leave a request a part of each turn only. In
 * a window no other container launches, and a queue would last longer than the window. */
#define MIN_UNFINISHED 2
#define MAX_UNFINISHED 4
#define MORE_NS UINT64_C(16000000)
#define QUEUED_NS UINT64_C(5000000)
#define MANY_LAUNCHES 5
#define NAP_NS UINT64_C(2000000)
#define SHORT_NAP_NS UINT64_C(50000)
/* Next to a container of higher priority the GPU has one batch of less than a millisecond, so that it is soon free, and
 * the next batch comes as soon as that is done. */
#define SMALL_NS UINT64_C(700000)
#define CLOSE_NS UINT64_C(60000)
#define GLANCE_NS UINT64_C(10000)

__thread struct lane gate_lanes[LANES] __attribute__((tls_model("initial-exec")));
atomic_uint gate_epoch = 1;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread bool has_exit_handler __attribute__((tls_model("initial-exec")));

static void thread_ends(void *lanes)
{
    (void)lanes;
    gate_close_batches();
}

static void make_key(void)
{
    pthread_key_create(&key, thread_ends);
}

void gate_after_fork(void)
{
    memset(gate_lanes, 0, sizeof gate_lanes);
    atomic_fetch_add(&gate_epoch, 1);
}

/* Between these two, calls that a capture in this thread would forbid are allowed and do not disturb it. */
static CUstreamCaptureMode relax_capture_mode(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    return mode;
}

static void restore_capture_mode(CUstreamCaptureMode mode)
{
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
}

static void sleep_briefly(uint64_t ns)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)(ns < NAP_NS ? ns : NAP_NS)};
    nanosleep(&pause, NULL);
}

static void close_lane(struct lane *lane)
{
    ASSERT(lane->batch == NULL || lane->left <= lane->size);
    if (lane->batch != NULL)
        meter_close(lane->batch, lane->size - lane->left);
    lane->batch = NULL;
    lane->left = 0;
}

/* How long to sleep before looking again; 0: no container of higher priority has the GPU. */
static uint64_t priority_wait(int device, uint64_t now)
{
    uint64_t wait = signals_show_work(device, now) ? SHORT_NAP_NS : 0;
    if (time_share_is_closed(device, now))
        wait = NAP_NS;
    return wait != 0 && time_share_has_turn(device, now) ? 0 : wait;
}

static void wait_for_priority(int device, uint64_t *now)
{
    for (uint64_t wait; (wait = priority_wait(device, *now)) != 0; *now = monotonic_ns()) {
        time_share_note_request(device, *now);
        sleep_briefly(wait);
    }
}

/* A few launches less, so that a program cannot predict which are measured together. In one of eight cases a single
 * launch, from which the others are estimated. */
static uint32_t vary_count(uint32_t count, uint64_t now)
{
    ASSERT(count >= 1);
    uint32_t random = (uint32_t)(now * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    return random % 8 == 0 ? 1 : count - (random >> 8) % (count / 4 + 1);
}

static uint32_t most_unfinished(const struct meter_state *state, uint32_t size, bool makes_room)
{
    uint64_t ns = state->each * size;
    if (!state->known || makes_room)
        return 1;
    if (facade_open()->limits.priority == 0 && ns <= MORE_NS / MAX_UNFINISHED)
        return MAX_UNFINISHED; /* no one waits for it to stop */
    if (size >= MANY_LAUNCHES || ns > MORE_NS / MIN_UNFINISHED)
        return MIN_UNFINISHED;
    return ns > MORE_NS / MAX_UNFINISHED ? (uint32_t)(MORE_NS / ns) : MAX_UNFINISHED;
}

/* Whether the GPU has enough to do without another batch of `charge`. */
static bool is_behind(const struct meter_state *state, uint32_t most, uint64_t charge, uint64_t window)
{
    if (state->unfinished < most + state->open)
        return false;
    return window != 0 || most < MIN_UNFINISHED || state->late || state->pending + charge > QUEUED_NS;
}

/* How long to sleep while the GPU is behind. */
static uint64_t unfinished_wait(const struct meter_state *state, uint64_t charge, bool makes_room, uint64_t now)
{
    if (makes_room)
        return state->ends > now + CLOSE_NS ? state->ends - now - CLOSE_NS : GLANCE_NS;
    /* One of the batches is likely done after a part of the time that this one will take. */
    return charge / 4 > SHORT_NAP_NS ? charge / 4 : SHORT_NAP_NS;
}

/* Waits until the container may launch a batch, and most of what it launched before is done. Returns what was charged
 * for the batch. Everything is decided again after each wait, because others may have launched meanwhile, and more may
 * be known about how long launches take. */
static uint64_t wait_for_share(CUcontext context, int device, uint64_t apart, uint64_t *now, struct lane *lane)
{
    for (;;) {
        wait_for_priority(device, now);
        time_share_note_request(device, *now);
        struct meter_state state = meter_read(context, device, *now);
        bool makes_room = signals_need_room(device, *now);
        uint64_t fill = makes_room ? SMALL_NS : BATCH_NS;
        uint32_t count = state.known ? bucket_batch(state.each, apart, fill) : 1;
        lane->size_limit = count < lane->size_limit ? count : lane->size_limit;
        lane->size = lane->left = vary_count(lane->size_limit, *now);
        ASSERT(lane->size >= 1 && lane->size <= BATCH_MAX);
        /* What would not end in the container's window is cut from the batch, and so from its charge. */
        uint64_t window = time_share_window(device, *now);
        lane->size = lane->left = launch_window_fit(window, *now, state.each, lane->size);
        /* Work that is late and was never measured takes long: it is charged what it has taken so far, at least. */
        uint64_t charge = state.late && !state.known ? PATIENCE_NS : state.each * lane->size, wait = 0;
        uint32_t most = most_unfinished(&state, lane->size, makes_room);
        bool behind = is_behind(&state, most, charge, window);
        if (behind)
            wait = unfinished_wait(&state, charge, makes_room, *now);
        else if ((wait = launch_window_wait(window, *now, charge)) == 0 &&
                 (wait = time_share_take(device, *now, charge)) == 0)
            return charge;
        /* While the GPU has enough to do, the container loses nothing by waiting. */
        uint64_t before = *now;
        sleep_briefly(wait);
        *now = monotonic_ns();
        if (!behind)
            time_share_note_wait(device, *now, *now - before);
    }
}

/* A batch grows at most fourfold, so that a wrong guess of what launches take costs little. */
static uint32_t next_limit(uint32_t before)
{
    if (before == 0)
        return 1;
    return before > BATCH_MAX / 4 ? BATCH_MAX : before * 4;
}

static void begin_batch(CUstream stream, CUcontext context, int device, uint64_t now, struct lane *lane)
{
    if (meter_is_capturing(stream))
        return; /* nothing runs now; the launch of the graph is measured */
    /* The lane may hold a batch of another stream with the same place, or of one that has ended: it teaches nothing. */
    bool same = lane->stream == stream && lane->epoch == atomic_load(&gate_epoch);
    uint32_t made = same ? lane->size - lane->left : 0, before = same ? lane->size_limit : 0;
    uint64_t apart = same && made > 0 ? (now - lane->opened) / made : 0;
    if (same && lane->batch != NULL && lane->left == 1 && !time_share_is_closed(device, now))
        return; /* the last of the batch */
    close_lane(lane);
    *lane = (struct lane){.stream = stream,
                          .epoch = atomic_load(&gate_epoch),
                          .device = device,
                          .asking = time_share_closed_flag(device, now),
                          .size_limit = next_limit(before)};
    uint64_t charge = wait_for_share(context, device, apart, &now, lane);
    ASSERT(lane->left == lane->size && lane->batch == NULL);
    lane->opened = now;
    lane->batch = meter_open(context, device, stream, now, charge);
}

static void (*entering)(int device); /* set before the first launch */

void on_gate_enter(void (*function)(int device))
{
    entering = function;
}

void gate_enter(CUstream stream)
{
    CUcontext context;
    struct lane *lane = gate_lane(stream);
    int device = facade_open() == NULL ? -1 : context_device(&context), before = errno;
    if (device < 0)
        return; /* for the driver's own answer */
    if (!has_exit_handler) {
        pthread_once(&once, make_key);
        pthread_setspecific(key, gate_lanes);
        has_exit_handler = true;
    }
    if (entering != NULL)
        entering(device);
    uint64_t now = monotonic_ns();
    if (time_share_is_measured(device, now)) {
        CUstreamCaptureMode mode = relax_capture_mode();
        begin_batch(stream, context, device, now, lane);
        restore_capture_mode(mode);
    } else {
        close_lane(lane);
        wait_for_priority(device, &now);
        time_share_note_use(device, now);
        const _Atomic uint64_t *asking = time_share_attention_flag(device, now);
        *lane = (struct lane){.stream = stream,
                              .epoch = atomic_load(&gate_epoch),
                              .device = device,
                              .asking = asking,
                              .left = asking == &time_share_zero_flag ? UNDECIDED : UNMEASURED};
    }
    errno = before;
}

void gate_leave(CUstream stream)
{
    struct lane *lane = gate_lane(stream);
    if (lane->stream != stream || lane->left == 0 || lane->batch == NULL)
        return;
    if (--lane->left == 0) {
        CUstreamCaptureMode mode = relax_capture_mode();
        close_lane(lane);
        restore_capture_mode(mode);
    }
}

void gate_close_batches(void)
{
    for (int i = 0; i < LANES; i++) {
        struct lane *lane = &gate_lanes[i];
        if (lane->batch != NULL) {
            CUstreamCaptureMode mode = relax_capture_mode();
            close_lane(lane);
            restore_capture_mode(mode);
        }
    }
}

void gate_switch_context(void)
{
    gate_close_batches();
    for (int i = 0; i < LANES; i++)
        gate_lanes[i].left = 0;
}

void gate_collect(void)
{
    CUcontext context;
    bool measuring = false;
    for (int i = 0; i < LANES; i++)
        measuring = measuring || gate_lanes[i].size > 0;
    int device = measuring ? context_device(&context) : -1;
    if (device < 0)
        return;
    CUstreamCaptureMode mode = relax_capture_mode();
    meter_read(context, device, monotonic_ns());
    restore_capture_mode(mode);
}

void gate_end_stream(CUstream stream)
{
    gate_close_batches();
    atomic_fetch_add(&gate_epoch, 1);
    CUstreamCaptureMode mode = relax_capture_mode();
    meter_end_stream(stream);
    restore_capture_mode(mode);
}

void gate_end_context(CUcontext context)
{
    gate_close_batches();
    atomic_fetch_add(&gate_epoch, 1);
    meter_end_context(context);
}
