#include "gate.h"

#include "bucket.h"
#include "contexts.h"
#include "facade.h"
#include "launches.h"
#include "meters.h"
#include "time_share.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define UNMEASURED UINT32_MAX
#define UNDECIDED 64 /* launches after which to look whether somebody decides again */
#define UNFINISHED_MOST 2 /* batches that the GPU has not done, beside those that are open */
#define NAP_NS UINT64_C(2000000)
#define SHORT_NAP_NS UINT64_C(50000)

__thread struct lane gate_lanes[LANES] __attribute__((tls_model("initial-exec")));
atomic_uint gate_epoch = 1;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread bool noticed __attribute__((tls_model("initial-exec")));

static void thread_ends(void *lanes)
{
    (void)lanes;
    gate_pause();
}

static void make_key(void)
{
    pthread_key_create(&key, thread_ends);
}

void gate_forget(void)
{
    memset(gate_lanes, 0, sizeof gate_lanes);
    atomic_fetch_add(&gate_epoch, 1);
    meters_forget();
}

/* Calls that a capture in this thread would forbid are allowed between these, and do not disturb it. */
static CUstreamCaptureMode relax(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    return mode;
}

static void restore(CUstreamCaptureMode mode)
{
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
}

static void nap(uint64_t ns)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)(ns < NAP_NS ? ns : NAP_NS)};
    nanosleep(&pause, NULL);
}

static void close_lane(struct lane *lane)
{
    if (lane->batch != NULL)
        meter_close(lane->batch, lane->size - lane->left);
    lane->batch = NULL;
    lane->left = 0;
}

static void wait_for_priority(int device, uint64_t *now)
{
    while (share_closed(device, *now)) {
        share_asks(device, *now);
        nap(NAP_NS);
        *now = share_now();
    }
}

/* Of so many launches some less, so that a program cannot foresee which are measured together, and now and then a single
 * one, from which the others are estimated. */
static uint32_t vary(uint32_t count, uint64_t now)
{
    uint32_t random = (uint32_t)(now * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    return random % 8 == 0 ? 1 : count - (random >> 8) % (count / 4 + 1);
}

/* Waits until the container has time for a batch of launches and most of what it launched before is done. Returns what
 * was charged for them. */
static uint64_t wait_for_share(CUcontext context, int device, uint64_t apart, uint64_t *now, struct lane *lane)
{
    for (;;) {
        wait_for_priority(device, now);
        share_asks(device, *now);
        struct meter_state state = meter_read(context, device, *now);
        uint32_t count = state.known ? bucket_batch(state.each, apart) : 1;
        lane->grown = count < lane->grown ? count : lane->grown;
        lane->size = lane->left = vary(lane->grown, *now);
        uint64_t announced = state.late && !state.known ? PATIENCE_NS : state.each * lane->size, wait = 0;
        if (state.unfinished >= (state.known ? UNFINISHED_MOST : 1) + state.open)
            wait = announced / 4 > SHORT_NAP_NS ? announced / 4 : SHORT_NAP_NS;
        else if ((wait = share_take(device, *now, announced)) == 0)
            return announced;
        bool in_debt = state.unfinished < UNFINISHED_MOST;
        uint64_t before = *now;
        nap(wait);
        *now = share_now();
        if (in_debt)
            share_waits(device, *now, *now - before);
    }
}

static void measure(CUstream stream, CUcontext context, int device, uint64_t now, struct lane *lane)
{
    if (meter_is_capturing(stream))
        return;
    bool same = lane->stream == stream && lane->epoch == atomic_load(&gate_epoch);
    uint32_t made = same ? lane->size - lane->left : 0, before = same ? lane->grown : 0;
    uint64_t apart = same && made > 0 ? (now - lane->opened) / made : 0;
    if (same && lane->batch != NULL && lane->left == 1 && !share_closed(device, now))
        return; /* the last of the batch */
    close_lane(lane);
    *lane = (struct lane){.stream = stream, .epoch = atomic_load(&gate_epoch), .device = device,
                          .asking = share_closed_word(device, now),
                          .grown = before > BATCH_MOST / 4 ? BATCH_MOST : before > 0 ? before * 4 : 1};
    uint64_t announced = wait_for_share(context, device, apart, &now, lane);
    lane->opened = now;
    lane->batch = meter_open(context, device, stream, now, announced);
}

void gate_enter(CUstream stream)
{
    CUcontext context;
    struct lane *lane = gate_lane(stream);
    int device = facade_open() == NULL ? -1 : context_device(&context), before = errno;
    if (device < 0)
        return; /* for the driver's own answer */
    if (!noticed) {
        pthread_once(&once, make_key);
        pthread_setspecific(key, gate_lanes);
        noticed = true;
    }
    uint64_t now = share_now();
    if (share_measured(device, now)) {
        CUstreamCaptureMode mode = relax();
        measure(stream, context, device, now, lane);
        restore(mode);
    } else {
        close_lane(lane);
        wait_for_priority(device, &now);
        const uint64_t *asking = share_attention_word(device, now);
        *lane = (struct lane){.stream = stream, .epoch = atomic_load(&gate_epoch), .device = device, .asking = asking,
                              .left = asking == &share_old_word ? UNDECIDED : UNMEASURED};
    }
    errno = before;
}

void gate_leave(CUstream stream)
{
    struct lane *lane = gate_lane(stream);
    if (lane->stream != stream || lane->left == 0 || lane->batch == NULL)
        return;
    if (--lane->left == 0) {
        CUstreamCaptureMode mode = relax();
        close_lane(lane);
        restore(mode);
    }
}

void gate_pause(void)
{
    for (int i = 0; i < LANES; i++) {
        struct lane *lane = &gate_lanes[i];
        if (lane->batch != NULL) {
            CUstreamCaptureMode mode = relax();
            close_lane(lane);
            restore(mode);
        }
    }
}

void gate_turns(void)
{
    gate_pause();
    for (int i = 0; i < LANES; i++)
        gate_lanes[i].left = 0;
}

void gate_waited(void)
{
    CUcontext context;
    bool measuring = false;
    for (int i = 0; i < LANES; i++)
        measuring = measuring || gate_lanes[i].size > 0;
    int device = measuring ? context_device(&context) : -1;
    if (device < 0)
        return;
    CUstreamCaptureMode mode = relax();
    meter_read(context, device, share_now());
    restore(mode);
}

void gate_stream_ends(CUstream stream)
{
    gate_pause();
    atomic_fetch_add(&gate_epoch, 1);
    CUstreamCaptureMode mode = relax();
    meter_stream_ends(stream);
    restore(mode);
}

void gate_context_ends(CUcontext context)
{
    gate_pause();
    atomic_fetch_add(&gate_epoch, 1);
    meter_context_ends(context);
}
