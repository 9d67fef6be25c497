#include "core/timeline.h"

#include "core/history.h"
#include "core/lane.h"
#include "core/pair.h"
#include "core/slots.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define DURATION_BITS 25
#define DURATION_MASK ((1ull << DURATION_BITS) - 1)
#define STEP_BITS 28
#define SWEEP_PAUSE_NS 20000000

/* NVIDIA does not say how long its four slices are. */
static const uint64_t slice_ns[SIMGPU_TIME_SLICES] = {2000000, 1000000, 4000000, 10000000};

struct turn {
    uint64_t start, duration, step;
    uint32_t slot;
};

static struct turn read_turn(struct simgpu_pair w)
{
    return (struct turn){.start = w.low,
                         .duration = w.high & DURATION_MASK,
                         .step = w.high >> 36,
                         .slot = (uint32_t)(w.high >> DURATION_BITS) & (SIMGPU_SLOTS - 1)};
}

static uint64_t next_step(uint64_t step)
{
    uint64_t next = (step + 1) & ((1ull << STEP_BITS) - 1);
    return next != 0 ? next : 1; /* 0 means that the GPU has never run anything */
}

static void log_turn(const struct machine *m, uint32_t gpu, struct turn t, uint64_t high, uint64_t done_after)
{
    struct simgpu_log_entry *entry = &machine_log(m, gpu)[t.step % SIMGPU_LOG];
    if (atomic_load(&entry->turn) == high)
        return;
    atomic_store(&entry->turn, 0);
    atomic_store(&entry->start, t.start);
    atomic_store(&entry->done_after, done_after);
    atomic_store(&entry->turn, high);
}

/* Gives the turn's time to its slot, once, and writes it into the log. */
static void finish_turn(const struct machine *m, uint32_t gpu, struct simgpu_pair word)
{
    struct turn t = read_turn(word);
    if (t.step == 0)
        return;
    struct simgpu_pair *at = &machine_gpu(m, gpu)->turn;
    struct simgpu_pair *executed = &machine_cell(m, gpu, t.slot)->executed;
    for (;;) {
        struct simgpu_pair seen = pair_load(executed);
        /* A turn that is no longer the newest was finished before the next one could be taken. */
        if (simgpu_half(&at->high) != word.high)
            return;
        if (seen.high == t.step) {
            log_turn(m, gpu, t, word.high, seen.low);
            return;
        }
        pair_swap(executed, seen, (struct simgpu_pair){.low = seen.low + t.duration, .high = t.step});
    }
}

static uint64_t executed_ns(const struct machine *m, uint32_t gpu, uint32_t slot)
{
    return simgpu_half(&machine_cell(m, gpu, slot)->executed.low);
}

/* Instances have the setting of their GPU. */
static struct simgpu_gpu *whole_gpu(const struct machine *m, uint32_t gpu)
{
    return machine_gpu(m, gpu < m->head->gpu_count ? gpu : machine_gpu(m, gpu)->parent);
}

uint32_t timeline_slice(const struct machine *m, uint32_t gpu)
{
    return atomic_load(&whole_gpu(m, gpu)->time_slice) % SIMGPU_TIME_SLICES;
}

static uint64_t longest_turn(const struct machine *m, uint32_t gpu)
{
    uint64_t by_default = whole_gpu(m, gpu)->default_slice_us * UINT64_C(1000);
    uint32_t slice = timeline_slice(m, gpu);
    if (slice != 0 || by_default == 0)
        return slice_ns[slice];
    return by_default < DURATION_MASK ? by_default : DURATION_MASK;
}

bool timeline_set_slice(const struct machine *m, uint32_t gpu, uint32_t slice)
{
    if (slice >= SIMGPU_TIME_SLICES)
        return false;
    atomic_store(&machine_gpu(m, gpu)->time_slice, slice);
    return true;
}

/* Whose turn comes after `last`, and from when: the next slot in circular order that had work when the last turn
 * ended; if none had, the one that got work first. Nothing runs for a moment while the process changes. False when
 * there is no work. */
static bool choose_next(const struct machine *m, uint32_t gpu, struct turn last, struct turn *next)
{
    uint64_t end = last.start + last.duration, most = longest_turn(m, gpu);
    uint64_t pause = whole_gpu(m, gpu)->switch_us * UINT64_C(1000);
    uint32_t used = machine_slots_used(m);
    bool found = false;
    for (uint32_t i = 1; i <= used; i++) {
        uint32_t slot = (last.slot + i) % used;
        struct simgpu_cell *cell = machine_cell(m, gpu, slot);
        uint64_t done = executed_ns(m, gpu, slot), work = atomic_load(&cell->work);
        if (work <= done || !slots_is_ready(m, slot))
            continue;
        uint64_t ready = atomic_load(&cell->ready_at);
        uint64_t start = ready > end ? ready : end;
        if (found && start >= next->start)
            continue;
        uint64_t left = work - done;
        *next = (struct turn){
            .start = start, .duration = left < most ? left : most, .step = next_step(last.step), .slot = slot};
        found = true;
        if (start == end)
            break;
    }
    if (last.step != 0 && next->slot != last.slot)
        next->start += pause;
    return found;
}

/* Keeps, for every slot, how much it had done at each tenth of a second between two turns. */
static void keep_history(const struct machine *m, uint32_t gpu, uint64_t from, uint64_t to)
{
    uint64_t first = from / SIMGPU_HISTORY_NS + 1, last = to / SIMGPU_HISTORY_NS;
    if (first + SIMGPU_HISTORY <= last)
        first = last - SIMGPU_HISTORY + 1;
    for (uint64_t tenth = first; tenth <= last; tenth++)
        for (uint32_t slot = 0; slot < machine_slots_used(m); slot++)
            history_store(machine_cell(m, gpu, slot), tenth, executed_ns(m, gpu, slot) / 1000);
}

/* Computes the turns up to `now` and returns the last one that has begun. */
static struct turn advance_turns(const struct machine *m, uint32_t gpu, uint64_t now)
{
    struct simgpu_pair *at = &machine_gpu(m, gpu)->turn;
    for (;;) {
        struct simgpu_pair word = pair_load(at);
        finish_turn(m, gpu, word);
        struct turn last = read_turn(word), next = {0};
        if (last.start > now + 1000000000) { /* the file is from before the machine was restarted */
            pair_swap(at, word, (struct simgpu_pair){.low = now, .high = next_step(last.step) << 36});
            continue;
        }
        if (last.start + last.duration > now || !choose_next(m, gpu, last, &next) || next.start > now)
            return last;
        uint64_t high = next.duration | (uint64_t)next.slot << DURATION_BITS | next.step << 36;
        if (!pair_swap(at, word, (struct simgpu_pair){.low = next.start, .high = high}))
            continue;
        if (next.start / SIMGPU_HISTORY_NS != last.start / SIMGPU_HISTORY_NS)
            keep_history(m, gpu, last.start, next.start);
    }
}

static uint64_t done_at(const struct machine *m, uint32_t gpu, uint32_t slot, struct turn last, uint64_t now)
{
    uint64_t end = last.start + last.duration, done = executed_ns(m, gpu, slot);
    return last.slot == slot && end > now && end - now <= done ? done - (end - now) : done;
}

uint64_t timeline_done(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t now)
{
    if (lane_exists(m, gpu, slot))
        return lane_done(m, gpu, slot, now);
    return done_at(m, gpu, slot, advance_turns(m, gpu, now), now);
}

uint64_t timeline_end(const struct machine *m, uint32_t gpu, uint32_t slot)
{
    if (lane_exists(m, gpu, slot))
        return lane_end(m, gpu, slot);
    return atomic_load(&machine_cell(m, gpu, slot)->work);
}

uint64_t timeline_append(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t ns)
{
    struct simgpu_cell *cell = machine_cell(m, gpu, slot);
    if (ns == 0)
        return timeline_end(m, gpu, slot);
    if (lane_exists(m, gpu, slot))
        return lane_append(m, gpu, slot, ns);
    uint64_t now = machine_now();
    if (timeline_done(m, gpu, slot, now) >= timeline_end(m, gpu, slot)) {
        uint64_t before = atomic_load(&cell->ready_at);
        while (before < now && !atomic_compare_exchange_strong(&cell->ready_at, &before, now)) {
        }
    }
    return atomic_fetch_add(&cell->work, ns) + ns;
}

/* True at once if the work was done in a turn before the current one. */
static bool done_before(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t position)
{
    bool given = executed_ns(m, gpu, slot) >= position;
    return given && read_turn(pair_load(&machine_gpu(m, gpu)->turn)).slot != slot;
}

/* The kernel wakes sleepers late, so a sleep ends a little early. */
static void sleep_for(uint64_t ns)
{
    if (ns < 100000) {
        sched_yield();
        return;
    }
    ns -= 60000;
    struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&pause, NULL);
}

static void wait_in_lane(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t position)
{
    for (uint64_t now = machine_now(); lane_done(m, gpu, slot, now) < position; now = machine_now()) {
        uint64_t when = lane_time_of(gpu, position, now);
        slots_sweep(m, SWEEP_PAUSE_NS);
        uint64_t left = when > now ? when - now : 0;
        sleep_for(left < SIMGPU_HISTORY_NS ? left : SIMGPU_HISTORY_NS);
    }
}

void timeline_wait(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t position)
{
    if (lane_exists(m, gpu, slot)) {
        wait_in_lane(m, gpu, slot, position);
        return;
    }
    if (position == machine_cell(m, gpu, slot)->base || done_before(m, gpu, slot, position))
        return;
    for (;;) {
        uint64_t now = machine_now();
        struct turn last = advance_turns(m, gpu, now);
        uint64_t done = done_at(m, gpu, slot, last, now), end = last.start + last.duration;
        if (done >= position)
            return;
        /* Not before this, even if no other process has work after the current turn. */
        uint64_t rest = position - done + (last.slot != slot && end > now ? end - now : 0);
        slots_sweep(m, SWEEP_PAUSE_NS);
        sleep_for(rest);
    }
}

uint64_t timeline_time_of(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t position, uint64_t fallback)
{
    if (lane_exists(m, gpu, slot))
        return lane_time_of(gpu, position, fallback);
    uint64_t step = machine_gpu(m, gpu)->turn.high >> 36;
    for (uint32_t i = 0; i < SIMGPU_LOG && i < step; i++) {
        struct simgpu_log_entry *entry = &machine_log(m, gpu)[(step - i) % SIMGPU_LOG];
        uint64_t high = atomic_load(&entry->turn);
        struct turn t = read_turn((struct simgpu_pair){.low = atomic_load(&entry->start), .high = high});
        uint64_t done_after = atomic_load(&entry->done_after);
        if (high == 0 || atomic_load(&entry->turn) != high)
            continue;
        if (t.start + t.duration <= fallback)
            return fallback; /* and so are all older ones */
        if (t.slot != slot)
            continue;
        if (done_after < position)
            return fallback; /* the turn that did it is no longer in the log */
        if (done_after - t.duration < position)
            return t.start + t.duration - (done_after - position);
    }
    return fallback;
}

/* Time a slot was given since `since`, a whole tenth of a second, in us. A slot that was not yet in use at that time
 * has no history of it; then the start of its current owner counts. */
static uint64_t done_since_us(const struct machine *m, uint32_t gpu, uint32_t slot, struct turn last, uint64_t since,
                              uint64_t now)
{
    if (lane_exists(m, gpu, slot))
        return (lane_done(m, gpu, slot, now) - lane_done_in_history(m, gpu, slot, since)) / 1000;
    if (last.start + last.duration <= since)
        return 0;
    struct simgpu_cell *cell = machine_cell(m, gpu, slot);
    uint64_t tenth = since / SIMGPU_HISTORY_NS, done = done_at(m, gpu, slot, last, now) / 1000;
    if (tenth > last.start / SIMGPU_HISTORY_NS)
        return 0;
    uint64_t then;
    if (!history_find(cell, tenth, &then))
        then = cell->base / 1000;
    return done > then ? done - then : 0;
}

static uint32_t busy_percent(const struct machine *m, uint32_t gpu, uint32_t first, uint32_t end_slot)
{
    uint64_t now = machine_now(), given = 0;
    uint64_t since = (now / SIMGPU_HISTORY_NS - 10) * SIMGPU_HISTORY_NS;
    struct turn last = advance_turns(m, gpu, now);
    for (uint32_t slot = first; slot < end_slot; slot++)
        given += done_since_us(m, gpu, slot, last, since, now);
    uint64_t share = (given * 1000 * 100 + (now - since) / 2) / (now - since);
    return share > 100 ? 100 : (uint32_t)share;
}

uint32_t timeline_busy_percent(const struct machine *m, uint32_t gpu)
{
    return busy_percent(m, gpu, 0, machine_slots_used(m));
}

uint32_t timeline_slot_percent(const struct machine *m, uint32_t gpu, uint32_t slot)
{
    return busy_percent(m, gpu, slot, slot + 1);
}
