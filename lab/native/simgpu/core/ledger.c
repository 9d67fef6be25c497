/* A step of the ledger is a change of one slot's memory. The word says what the step is; the slot's cell gets it from
 * the process that takes the next step, or the one that took this step, but only once: the cell keeps the step's
 * number. A process that is killed in between leaves a step that any process can finish. */
#include "core/ledger.h"

#include "core/pair.h"

#include <stdatomic.h>

#define STEP_MASK 0xFFFFFFFFFFFFull

static uint32_t used_of(struct simgpu_pair w)
{
    return (uint32_t)w.low;
}
static int32_t delta_of(struct simgpu_pair w)
{
    return (int32_t)(w.low >> 32);
}
static uint32_t slot_of(struct simgpu_pair w)
{
    return (uint32_t)(w.high >> 48) & (SIMGPU_SLOTS - 1);
}

static struct simgpu_pair step_after(struct simgpu_pair last, uint32_t slot, int32_t delta)
{
    uint32_t used = used_of(last) + (uint32_t)delta;
    return (struct simgpu_pair){.low = used | (uint64_t)(uint32_t)delta << 32,
                                .high = ((last.high + 1) & STEP_MASK) | (uint64_t)slot << 48};
}

static void finish_step(const struct machine *m, uint32_t gpu, struct simgpu_pair step)
{
    if ((step.high & STEP_MASK) == 0)
        return; /* nothing has happened yet */
    struct simgpu_pair *word = &machine_gpu(m, gpu)->ledger;
    _Atomic uint64_t *cell = &machine_cell(m, gpu, slot_of(step))->memory;
    uint32_t number = (uint32_t)step.high;
    uint64_t seen = atomic_load(cell);
    while ((uint32_t)(seen >> 32) != number) {
        /* A step that is no longer the newest was finished before the next one could be taken. */
        if (simgpu_half(&word->high) != step.high)
            return;
        uint64_t then = (uint32_t)((uint32_t)seen + (uint32_t)delta_of(step)) | (uint64_t)number << 32;
        if (atomic_compare_exchange_strong(cell, &seen, then))
            return;
    }
}

bool ledger_take(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib)
{
    struct simgpu_gpu *record = machine_gpu(m, gpu);
    if (mib > INT32_MAX)
        return false;
    for (;;) {
        struct simgpu_pair last = pair_load(&record->ledger);
        finish_step(m, gpu, last);
        if ((uint64_t)used_of(last) + mib > record->memory_mib)
            return false;
        struct simgpu_pair next = step_after(last, slot, (int32_t)mib);
        if (!pair_swap(&record->ledger, last, next))
            continue;
        finish_step(m, gpu, next);
        return true;
    }
}

void ledger_give(const struct machine *m, uint32_t gpu, uint32_t slot, uint32_t mib)
{
    struct simgpu_gpu *record = machine_gpu(m, gpu);
    while (mib > 0) {
        struct simgpu_pair last = pair_load(&record->ledger);
        finish_step(m, gpu, last);
        struct simgpu_pair next = step_after(last, slot, -(int32_t)mib);
        if (!pair_swap(&record->ledger, last, next))
            continue;
        finish_step(m, gpu, next);
        return;
    }
}

/* Takes at most `most` from the slot while it belongs to the process, and leaves `keep`. */
static void take_back(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t identity, uint32_t most,
                      uint32_t keep)
{
    struct simgpu_gpu *record = machine_gpu(m, gpu);
    for (;;) {
        struct simgpu_pair last = pair_load(&record->ledger);
        finish_step(m, gpu, last);
        /* Checked after the word was read: a new owner of the slot could only take memory by a later step, and then the
         * exchange below fails. */
        if (atomic_load(&m->processes[slot].identity) != identity)
            return;
        uint32_t held = ledger_held(m, gpu, slot), more = held > keep ? held - keep : 0,
                 part = more < most ? more : most;
        if (part == 0)
            return;
        struct simgpu_pair next = step_after(last, slot, -(int32_t)part);
        if (!pair_swap(&record->ledger, last, next))
            continue;
        finish_step(m, gpu, next);
        return;
    }
}

void ledger_evict(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t identity, uint32_t mib)
{
    take_back(m, gpu, slot, identity, mib, 0);
}

void ledger_reduce_to(const struct machine *m, uint32_t gpu, uint32_t slot, uint64_t identity, uint32_t keep)
{
    take_back(m, gpu, slot, identity, INT32_MAX, keep);
}

uint32_t ledger_used(const struct machine *m, uint32_t gpu)
{
    return used_of(pair_load(&machine_gpu(m, gpu)->ledger));
}

uint32_t ledger_held(const struct machine *m, uint32_t gpu, uint32_t slot)
{
    return (uint32_t)atomic_load(&machine_cell(m, gpu, slot)->memory);
}
