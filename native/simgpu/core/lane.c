#include "lane.h"

#include "pair.h"
#include "slots.h"

#define PERCENT_MASK 0xFFull
#define TENTH_BITS 20u
#define MICRO_MASK ((1ull << (64 - TENTH_BITS)) - 1)
#define PIECES 4096u

/* What this process asked for last, for events: up to `end`, from `start` on, done at `done`. */
typedef struct {
    uint64_t begin, end, start, done;
} piece;

static struct {
    piece newest[PIECES];
    uint64_t count;
} pieces[SIMGPU_MAX_GPUS];

static uint64_t word_of(const machine *m, uint32_t gpu, uint32_t slot) {
    return __atomic_load_n(&machine_cell(m, gpu, slot)->mps, __ATOMIC_SEQ_CST);
}

bool lane_of(const machine *m, uint32_t gpu, uint32_t slot) { return word_of(m, gpu, slot) != 0; }

uint32_t lane_limit_mib(const machine *m, uint32_t gpu, uint32_t slot) {
    return (uint32_t)(word_of(m, gpu, slot) >> 32);
}

void lane_open(const machine *m, uint32_t gpu, uint32_t slot, uint32_t percent, uint32_t limit_mib) {
    simgpu_cell *cell = machine_cell(m, gpu, slot);
    cell->lane = (simgpu_pair){.low = cell->base, .high = machine_now()};
    __atomic_store_n(&cell->mps, percent | (uint64_t)limit_mib << 32, __ATOMIC_SEQ_CST);
    cell->promised = 100;
}

/* What all clients with work at hand were promised together, this one included; at least 100. */
static uint64_t promised(const machine *m, uint32_t gpu, uint32_t self, uint64_t now) {
    uint64_t sum = word_of(m, gpu, self) & PERCENT_MASK;
    for (uint32_t slot = 0; slot < machine_slots_used(m); slot++) {
        uint64_t word = word_of(m, gpu, slot);
        if (slot == self || word == 0 || !slots_ready(m, slot)) continue;
        if (__atomic_load_n(&machine_cell(m, gpu, slot)->lane.high, __ATOMIC_SEQ_CST) > now) sum += word & PERCENT_MASK;
    }
    return sum > 100 ? sum : 100;
}

static uint64_t done_at(const machine *m, uint32_t gpu, uint32_t slot, simgpu_pair lane, uint64_t now) {
    simgpu_cell *cell = machine_cell(m, gpu, slot);
    uint64_t since = __atomic_load_n(&cell->ready_at, __ATOMIC_SEQ_CST);
    if (now < since) now = since;
    if (lane.high <= now) return lane.low;
    uint64_t promised_then = __atomic_load_n(&cell->promised, __ATOMIC_SEQ_CST), all = lane.low - cell->base;
    uint64_t left = (lane.high - now) * (word_of(m, gpu, slot) & PERCENT_MASK) / promised_then;
    return lane.low - (left < all ? left : all);
}

/* Keeps how much was done at each tenth of a second since the last time. */
static void keep_history(const machine *m, uint32_t gpu, uint32_t slot, simgpu_pair lane, uint64_t now) {
    simgpu_cell *cell = machine_cell(m, gpu, slot);
    uint64_t last = now / SIMGPU_HISTORY_NS, first = last >= SIMGPU_HISTORY ? last - SIMGPU_HISTORY + 1 : 0;
    for (uint64_t tenth = last + 1; tenth-- > first;) {
        uint64_t *at = &cell->history[tenth % SIMGPU_HISTORY];
        if (__atomic_load_n(at, __ATOMIC_SEQ_CST) >> (64 - TENTH_BITS) == (tenth & ((1u << TENTH_BITS) - 1))) return;
        uint64_t done = done_at(m, gpu, slot, lane, tenth * SIMGPU_HISTORY_NS) / 1000;
        __atomic_store_n(at, tenth << (64 - TENTH_BITS) | (done & MICRO_MASK), __ATOMIC_SEQ_CST);
    }
}

/* A reader knows by `end`, which is written last, whether a piece is whole. */
static void keep_piece(uint32_t gpu, piece p) {
    if (gpu >= SIMGPU_MAX_GPUS) return;
    uint64_t number = __atomic_fetch_add(&pieces[gpu].count, 1, __ATOMIC_SEQ_CST);
    piece *at = &pieces[gpu].newest[number % PIECES];
    __atomic_store_n(&at->end, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&at->begin, p.begin, __ATOMIC_SEQ_CST);
    __atomic_store_n(&at->start, p.start, __ATOMIC_SEQ_CST);
    __atomic_store_n(&at->done, p.done, __ATOMIC_SEQ_CST);
    __atomic_store_n(&at->end, p.end, __ATOMIC_SEQ_CST);
}

uint64_t lane_add(const machine *m, uint32_t gpu, uint32_t slot, uint64_t ns) {
    simgpu_cell *cell = machine_cell(m, gpu, slot);
    for (;;) {
        simgpu_pair seen = pair_load(&cell->lane);
        uint64_t now = machine_now(), percent = word_of(m, gpu, slot) & PERCENT_MASK;
        bool idle = seen.high <= now;
        keep_history(m, gpu, slot, seen, now);
        uint64_t all = promised(m, gpu, slot, now), takes = ns * all / percent, start = idle ? now : seen.high;
        simgpu_pair next = {.low = seen.low + ns, .high = start + (takes != 0 ? takes : 1)};
        if (!pair_swap(&cell->lane, seen, next)) continue;
        __atomic_store_n(&cell->promised, all, __ATOMIC_SEQ_CST);
        if (idle) __atomic_store_n(&cell->ready_at, now, __ATOMIC_SEQ_CST);
        keep_piece(gpu, (piece){.begin = seen.low, .end = next.low, .start = start, .done = next.high});
        return next.low;
    }
}

uint64_t lane_end(const machine *m, uint32_t gpu, uint32_t slot) {
    return __atomic_load_n(&machine_cell(m, gpu, slot)->lane.low, __ATOMIC_SEQ_CST);
}

uint64_t lane_done(const machine *m, uint32_t gpu, uint32_t slot, uint64_t now) {
    simgpu_pair lane = pair_load(&machine_cell(m, gpu, slot)->lane);
    return done_at(m, gpu, slot, lane, now);
}

uint64_t lane_when(uint32_t gpu, uint64_t position, uint64_t fallback) {
    uint64_t count = gpu < SIMGPU_MAX_GPUS ? __atomic_load_n(&pieces[gpu].count, __ATOMIC_SEQ_CST) : 0;
    for (uint64_t i = 1; i <= count && i <= PIECES; i++) {
        piece *at = &pieces[gpu].newest[(count - i) % PIECES];
        uint64_t end = __atomic_load_n(&at->end, __ATOMIC_SEQ_CST);
        uint64_t begin = __atomic_load_n(&at->begin, __ATOMIC_SEQ_CST);
        if (end < position) break;
        if (begin >= position) continue;
        uint64_t start = __atomic_load_n(&at->start, __ATOMIC_SEQ_CST), done = __atomic_load_n(&at->done, __ATOMIC_SEQ_CST);
        uint64_t when = done - (uint64_t)((unsigned __int128)(done - start) * (end - position) / (end - begin));
        return when > fallback ? when : fallback; /* work is done after it was asked for */
    }
    return fallback;
}

uint64_t lane_then(const machine *m, uint32_t gpu, uint32_t slot, uint64_t since) {
    simgpu_cell *cell = machine_cell(m, gpu, slot);
    uint64_t tenth = since / SIMGPU_HISTORY_NS;
    uint64_t entry = __atomic_load_n(&cell->history[tenth % SIMGPU_HISTORY], __ATOMIC_SEQ_CST);
    uint64_t done = lane_done(m, gpu, slot, since);
    if (since >= __atomic_load_n(&cell->ready_at, __ATOMIC_SEQ_CST)) return done;
    if (entry >> (64 - TENTH_BITS) != (tenth & ((1u << TENTH_BITS) - 1))) return done;
    uint64_t then = (entry & MICRO_MASK) * 1000;
    return then < done ? then : done;
}
