/* A step of the ledger is a change of one slot's memory. The word says what the step is; the slot's cell gets it from
 * whoever wants to take the next step, or from whoever took this one, but only once: the cell keeps the step's
 * number. A process killed between the two leaves a step that anybody can finish. */
#include "ledger.h"

#include "pair.h"

#define STEP_MASK 0xFFFFFFFFFFFFull

static uint32_t used_of(simgpu_pair w) { return (uint32_t)w.low; }
static int32_t delta_of(simgpu_pair w) { return (int32_t)(w.low >> 32); }
static uint32_t slot_of(simgpu_pair w) { return (uint32_t)(w.high >> 48) & (SIMGPU_SLOTS - 1); }

static simgpu_pair step_after(simgpu_pair last, uint32_t slot, int32_t delta) {
    uint32_t used = used_of(last) + (uint32_t)delta;
    return (simgpu_pair){.low = used | (uint64_t)(uint32_t)delta << 32,
                         .high = ((last.high + 1) & STEP_MASK) | (uint64_t)slot << 48};
}

static void finish(const machine *m, uint32_t gpu, simgpu_pair step) {
    if ((step.high & STEP_MASK) == 0) return; /* nothing has happened yet */
    simgpu_pair *word = &machine_gpu(m, gpu)->ledger;
    uint64_t *cell = &machine_cell(m, gpu, slot_of(step))->memory;
    uint32_t number = (uint32_t)step.high;
    uint64_t seen = __atomic_load_n(cell, __ATOMIC_SEQ_CST);
    while ((uint32_t)(seen >> 32) != number) {
        /* A step that is no longer the newest was finished before the next one could be taken. */
        if (__atomic_load_n(&word->high, __ATOMIC_SEQ_CST) != step.high) return;
        uint64_t then = (uint32_t)((uint32_t)seen + (uint32_t)delta_of(step)) | (uint64_t)number << 32;
        if (__atomic_compare_exchange_n(cell, &seen, then, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
    }
}

bool ledger_take(const machine *m, uint32_t gpu, uint32_t slot, uint32_t mib) {
    simgpu_gpu *record = machine_gpu(m, gpu);
    if (mib > INT32_MAX) return false;
    for (;;) {
        simgpu_pair last = pair_load(&record->ledger);
        finish(m, gpu, last);
        if ((uint64_t)used_of(last) + mib > record->memory_mib) return false;
        simgpu_pair next = step_after(last, slot, (int32_t)mib);
        if (!pair_swap(&record->ledger, last, next)) continue;
        finish(m, gpu, next);
        return true;
    }
}

void ledger_give(const machine *m, uint32_t gpu, uint32_t slot, uint32_t mib) {
    simgpu_gpu *record = machine_gpu(m, gpu);
    while (mib > 0) {
        simgpu_pair last = pair_load(&record->ledger);
        finish(m, gpu, last);
        simgpu_pair next = step_after(last, slot, -(int32_t)mib);
        if (!pair_swap(&record->ledger, last, next)) continue;
        finish(m, gpu, next);
        return;
    }
}

/* Takes at most `most` from the slot while it is the process's, and leaves `but`. */
static void take_back(const machine *m, uint32_t gpu, uint32_t slot, uint64_t identity, uint32_t most, uint32_t but) {
    simgpu_gpu *record = machine_gpu(m, gpu);
    for (;;) {
        simgpu_pair last = pair_load(&record->ledger);
        finish(m, gpu, last);
        /* Asked after the word was read: a new owner of the slot could only take memory by a later step, and then the
         * exchange below fails. */
        if (__atomic_load_n(&m->processes[slot].identity, __ATOMIC_SEQ_CST) != identity) return;
        uint32_t held = ledger_held(m, gpu, slot), more = held > but ? held - but : 0, part = more < most ? more : most;
        if (part == 0) return;
        simgpu_pair next = step_after(last, slot, -(int32_t)part);
        if (!pair_swap(&record->ledger, last, next)) continue;
        finish(m, gpu, next);
        return;
    }
}

void ledger_evict(const machine *m, uint32_t gpu, uint32_t slot, uint64_t identity, uint32_t mib) {
    take_back(m, gpu, slot, identity, mib, 0);
}

void ledger_reap(const machine *m, uint32_t gpu, uint32_t slot, uint64_t identity, uint32_t but) {
    take_back(m, gpu, slot, identity, INT32_MAX, but);
}

uint32_t ledger_used(const machine *m, uint32_t gpu) {
    return used_of(pair_load(&machine_gpu(m, gpu)->ledger));
}

uint32_t ledger_held(const machine *m, uint32_t gpu, uint32_t slot) {
    return (uint32_t)__atomic_load_n(&machine_cell(m, gpu, slot)->memory, __ATOMIC_SEQ_CST);
}
