/* A slot's word for managed memory says how much of it is on the GPU and how much on the host. A process that moves
 * pages changes that word and then the ledger. If it is killed in between, memory stays charged to the slot until its
 * process ends, never memory in use that is not charged. */
#include "core/paging.h"

#include "core/ledger.h"
#include "core/slots.h"

#include <stdatomic.h>

#define NO_SLOT UINT32_MAX

static uint32_t resident(uint64_t word)
{
    return (uint32_t)word;
}

static uint64_t make_word(uint32_t on_gpu, uint32_t on_host)
{
    return on_gpu | (uint64_t)on_host << 32;
}

static _Atomic uint64_t *word_at(const struct machine *m, uint32_t gpu, uint32_t slot)
{
    return &machine_cell(m, gpu, slot)->managed;
}

static uint64_t load(const _Atomic uint64_t *at)
{
    return atomic_load(at);
}

static bool replace_word(_Atomic uint64_t *at, uint64_t was, uint64_t is)
{
    return atomic_compare_exchange_strong(at, &was, is);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* What the host has space for. */
static uint32_t host_left(const struct machine *m)
{
    uint64_t spilled = 0;
    for (uint32_t gpu = 0; gpu < m->head->unit_count; gpu++)
        for (uint32_t slot = 0; slot < machine_slots_used(m); slot++)
            if (slots_pid(m, slot) != 0)
                spilled += paging_spilled(load(word_at(m, gpu, slot)));
    return spilled < m->head->host_mib ? (uint32_t)(m->head->host_mib - spilled) : 0;
}

static uint32_t gpu_left(const struct machine *m, uint32_t gpu)
{
    return (machine_gpu(m, gpu)->memory_mib - ledger_used(m, gpu)) / 2 * 2;
}

/* Takes what the GPU has left, at most `mib`. */
static uint32_t take_what_is_left(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib)
{
    for (;;) {
        uint32_t part = smaller(mib, gpu_left(m, gpu));
        if (part == 0 || ledger_take(m, gpu, slot, part))
            return part;
    }
}

bool paging_take(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib)
{
    _Atomic uint64_t *at = word_at(m, gpu, slot), word;
    slots_sweep(m, 0);
    uint32_t part = take_what_is_left(m, gpu, slot, mib);
    if (mib - part > host_left(m)) {
        ledger_give(m, gpu, slot, part);
        return false;
    }
    do
        word = load(at);
    while (!replace_word(at, word, make_word(resident(word) + part, paging_spilled(word) + mib - part)));
    return true;
}

static uint32_t less(uint32_t a, uint32_t b)
{
    return a > b ? a - b : 0;
}

void paging_give(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib, uint32_t kept)
{
    _Atomic uint64_t *at = word_at(m, gpu, slot), word;
    uint32_t from_host, from_gpu;
    do {
        word = load(at);
        from_host = smaller(mib, less(paging_spilled(word), kept));
        from_gpu = smaller(mib - from_host, resident(word));
        from_host = smaller(mib - from_gpu, paging_spilled(word));
    } while (!replace_word(at, word, make_word(resident(word) - from_gpu, paging_spilled(word) - from_host)));
    ledger_give(m, gpu, slot, from_gpu);
}

/* The slot with pages on the GPU that was idle longest. */
static uint32_t least_recently_used(const struct machine *m, uint32_t gpu, uint32_t except)
{
    uint32_t found = NO_SLOT;
    uint64_t oldest = UINT64_MAX;
    for (uint32_t slot = 0; slot < machine_slots_used(m); slot++) {
        struct simgpu_cell *cell = machine_cell(m, gpu, slot);
        uint64_t touched = load(&cell->touched_at);
        if (slot == except || slots_pid(m, slot) == 0 || resident(load(&cell->managed)) == 0 || touched >= oldest)
            continue;
        found = slot;
        oldest = touched;
    }
    return found;
}

static bool move_out(const struct machine *m, uint32_t gpu, uint32_t mib, uint32_t except, uint32_t *moved)
{
    while (gpu_left(m, gpu) < mib) {
        uint32_t slot = least_recently_used(m, gpu, except), missing = mib - gpu_left(m, gpu);
        if (slot == NO_SLOT)
            return false;
        uint64_t identity = load(&m->processes[slot].identity), word = load(word_at(m, gpu, slot));
        uint32_t part = smaller(missing, smaller(resident(word), host_left(m)));
        if (part == 0)
            return false;
        if (replace_word(word_at(m, gpu, slot), word, make_word(resident(word) - part, paging_spilled(word) + part))) {
            ledger_evict(m, gpu, slot, identity, part);
            *moved += part;
        }
    }
    return true;
}

bool paging_evict(const struct machine *m, uint32_t gpu, uint32_t mib, uint32_t *moved)
{
    return move_out(m, gpu, mib, NO_SLOT, moved);
}

uint32_t paging_push(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib)
{
    _Atomic uint64_t *at = word_at(m, gpu, slot), word;
    uint32_t part;
    do {
        word = load(at);
        part = smaller(smaller(mib, resident(word)), host_left(m));
    } while (!replace_word(at, word, make_word(resident(word) - part, paging_spilled(word) + part)));
    ledger_give(m, gpu, slot, part);
    return part;
}

uint32_t paging_touch(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t kept)
{
    _Atomic uint64_t *at = word_at(m, gpu, slot), word;
    uint32_t wanted = less(paging_spilled(load(at)), kept), others = 0;
    atomic_store(&machine_cell(m, gpu, slot)->touched_at, machine_now());
    if (wanted == 0)
        return 0;
    (void)move_out(m, gpu, wanted, slot, &others);
    uint32_t part = take_what_is_left(m, gpu, slot, wanted), moved;
    do {
        word = load(at);
        moved = smaller(part, less(paging_spilled(word), kept));
    } while (!replace_word(at, word, make_word(resident(word) + moved, paging_spilled(word) - moved)));
    ledger_give(m, gpu, slot, part - moved);
    return wanted;
}
