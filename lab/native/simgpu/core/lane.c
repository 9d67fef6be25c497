#include "core/lane.h"

#include "core/history.h"
#include "core/ledger.h"
#include "core/pair.h"
#include "core/slots.h"

#include <stdatomic.h>

#define PERCENT_MASK 0xFFull
#define PIECES 4096

/* What a client's context takes on an H200, and what its limit counts of that: docs/measurements-sharing.md. */
#define CLIENTS_CONTEXT_MIB 517
#define CLIENTS_OWN_MIB 167

/* The latest work of this process, for events: up to position `end`, from `start` on, done at `done`. */
struct piece { _Atomic uint64_t begin, end, start, done; };

static struct {
    struct piece newest[PIECES];
    _Atomic uint64_t count;
} pieces[SIMGPU_MAX_GPUS];

static uint64_t mps_word(const struct machine *m, uint32_t gpu, uint32_t slot)
{
    return atomic_load(&machine_cell(m, gpu, slot)->mps);
}

bool lane_exists(const struct machine *m, uint32_t gpu, uint32_t slot)
{
    return mps_word(m, gpu, slot) != 0;
}

uint32_t lane_limit_mib(const struct machine *m, uint32_t gpu, uint32_t slot)
{
    return (uint32_t)(mps_word(m, gpu, slot) >> 32);
}

uint32_t lane_held_mib(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t more_mib)
{
    uint32_t held = ledger_held(m, gpu, slot) + more_mib;
    if (!lane_exists(m, gpu, slot))
        return held;
    uint32_t context = machine_gpu(m, gpu)->context_mib, own = context * CLIENTS_OWN_MIB / CLIENTS_CONTEXT_MIB;
    uint64_t of_server = (uint64_t)atomic_load(&machine_cell(m, gpu, slot)->contexts) * (context - own);
    return of_server < held ? held - (uint32_t)of_server : 0;
}

uint32_t lane_multiprocessors(const struct machine *m, uint32_t gpu, uint32_t slot)
{
    uint32_t all = machine_gpu(m, gpu)->sm_count;
    if (!lane_exists(m, gpu, slot))
        return all;
    uint64_t pairs = all * (mps_word(m, gpu, slot) & PERCENT_MASK) / 200;
    return pairs > 0 ? 2 * (uint32_t)pairs : 2;
}

void lane_open(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t percent, uint32_t limit_mib)
{
    struct simgpu_cell *cell = machine_cell(m, gpu, slot);
    cell->lane = (struct simgpu_pair){.low = cell->base, .high = machine_now()};
    atomic_store(&cell->mps, percent | (uint64_t)limit_mib << 32);
    cell->promised = 100;
}

/* The percentages of all clients that have work, including this one, added up; at least 100. */
static uint64_t sum_percents(const struct machine *m, uint32_t gpu, uint32_t self, uint64_t now)
{
    uint64_t sum = mps_word(m, gpu, self) & PERCENT_MASK;
    for (uint32_t slot = 0; slot < machine_slots_used(m); slot++) {
        uint64_t word = mps_word(m, gpu, slot);
        if (slot == self || word == 0 || !slots_is_ready(m, slot))
            continue;
        if (simgpu_half(&machine_cell(m, gpu, slot)->lane.high) > now)
            sum += word & PERCENT_MASK;
    }
    return sum > 100 ? sum : 100;
}

static uint64_t done_at(const struct machine *m, uint32_t gpu, uint32_t slot, struct simgpu_pair lane, uint64_t now)
{
    struct simgpu_cell *cell = machine_cell(m, gpu, slot);
    uint64_t since = atomic_load(&cell->ready_at);
    if (now < since)
        now = since;
    if (lane.high <= now)
        return lane.low;
    uint64_t promised_then = atomic_load(&cell->promised), all = lane.low - cell->base;
    uint64_t left = (lane.high - now) * (mps_word(m, gpu, slot) & PERCENT_MASK) / promised_then;
    return lane.low - (left < all ? left : all);
}

/* Keeps how much was done at each tenth of a second since the last time. */
static void keep_history(const struct machine *m, uint32_t gpu, uint32_t slot, struct simgpu_pair lane, uint64_t now)
{
    struct simgpu_cell *cell = machine_cell(m, gpu, slot);
    uint64_t last = now / SIMGPU_HISTORY_NS, first = last >= SIMGPU_HISTORY ? last - SIMGPU_HISTORY + 1 : 0;
    uint64_t stored;
    for (uint64_t tenth = last + 1; tenth-- > first && !history_find(cell, tenth, &stored);)
        history_store(cell, tenth, done_at(m, gpu, slot, lane, tenth * SIMGPU_HISTORY_NS) / 1000);
}

/* `end` is written last, so a reader can tell by it whether a piece is complete. */
static void keep_piece(uint32_t gpu, struct piece p)
{
    if (gpu >= SIMGPU_MAX_GPUS)
        return;
    uint64_t number = atomic_fetch_add(&pieces[gpu].count, 1);
    struct piece *at = &pieces[gpu].newest[number % PIECES];
    atomic_store(&at->end, 0);
    atomic_store(&at->begin, p.begin);
    atomic_store(&at->start, p.start);
    atomic_store(&at->done, p.done);
    atomic_store(&at->end, p.end);
}

uint64_t lane_append(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t ns)
{
    struct simgpu_cell *cell = machine_cell(m, gpu, slot);
    for (;;) {
        struct simgpu_pair seen = pair_load(&cell->lane);
        uint64_t now = machine_now(), percent = mps_word(m, gpu, slot) & PERCENT_MASK;
        bool idle = seen.high <= now;
        keep_history(m, gpu, slot, seen, now);
        uint64_t all = sum_percents(m, gpu, slot, now), takes = ns * all / percent, start = idle ? now : seen.high;
        struct simgpu_pair next = {.low = seen.low + ns, .high = start + (takes != 0 ? takes : 1)};
        if (!pair_swap(&cell->lane, seen, next))
            continue;
        atomic_store(&cell->promised, all);
        if (idle)
            atomic_store(&cell->ready_at, now);
        keep_piece(gpu, (struct piece){.begin = seen.low, .end = next.low, .start = start, .done = next.high});
        return next.low;
    }
}

uint64_t lane_end(const struct machine *m, uint32_t gpu, uint32_t slot)
{
    return simgpu_half(&machine_cell(m, gpu, slot)->lane.low);
}

uint64_t lane_done(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t now)
{
    struct simgpu_pair lane = pair_load(&machine_cell(m, gpu, slot)->lane);
    return done_at(m, gpu, slot, lane, now);
}

uint64_t lane_time_of(uint32_t gpu, uint64_t position, uint64_t fallback)
{
    uint64_t count = gpu < SIMGPU_MAX_GPUS ? atomic_load(&pieces[gpu].count) : 0;
    for (uint64_t i = 1; i <= count && i <= PIECES; i++) {
        struct piece *at = &pieces[gpu].newest[(count - i) % PIECES];
        uint64_t end = atomic_load(&at->end);
        uint64_t begin = atomic_load(&at->begin);
        if (end < position)
            break;
        if (begin >= position)
            continue;
        uint64_t start = atomic_load(&at->start), done = atomic_load(&at->done);
        uint64_t when = done - (uint64_t)((unsigned __int128)(done - start) * (end - position) / (end - begin));
        return when > fallback ? when : fallback; /* work is done after it was submitted */
    }
    return fallback;
}

uint64_t lane_done_in_history(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t since)
{
    struct simgpu_cell *cell = machine_cell(m, gpu, slot);
    uint64_t done = lane_done(m, gpu, slot, since), stored_us;
    if (since >= atomic_load(&cell->ready_at) || !history_find(cell, since / SIMGPU_HISTORY_NS, &stored_us))
        return done;
    return stored_us * 1000 < done ? stored_us * 1000 : done;
}
