/* Entries that say who has what open, and one for each allocation that its owner freed meanwhile. Whoever removes the last
 * of the former looks for the latter, and of several the one that removes it gives the memory back. */
#include "imports.h"

#include "ledger.h"

#define FREED (1ull << 63) /* in `number` */

static simgpu_import *entry(const machine *m, uint32_t i) {
    return (simgpu_import *)((char *)m->head + SIMGPU_IMPORTS_AT) + i;
}

static uint64_t load(const uint64_t *at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }

static bool remove_entry(simgpu_import *e, uint64_t user) {
    return __atomic_compare_exchange_n(&e->user, &user, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* An entry is filled while its user's identity is marked as not ready. */
static bool add(const machine *m, const imported *what, uint64_t number, uint64_t user) {
    for (uint32_t i = 0; i < SIMGPU_IMPORTS; i++) {
        simgpu_import *e = entry(m, i);
        uint64_t free = 0, filling = user & ~SIMGPU_IDENTITY_READY;
        if (!__atomic_compare_exchange_n(&e->user, &free, filling, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
        e->owner = what->owner;
        e->number = number;
        e->mib = what->mib;
        e->place = what->gpu | what->slot << 8;
        __atomic_store_n(&e->user, filling | SIMGPU_IDENTITY_READY, __ATOMIC_SEQ_CST);
        return true;
    }
    return false;
}

static simgpu_import *find(const machine *m, uint64_t owner, uint64_t number) {
    for (uint32_t i = 0; i < SIMGPU_IMPORTS; i++) {
        simgpu_import *e = entry(m, i);
        if ((load(&e->user) & SIMGPU_IDENTITY_READY) && e->owner == owner && e->number == number) return e;
    }
    return NULL;
}

static void settle(const machine *m, uint64_t owner, uint64_t number) {
    simgpu_import *freed = find(m, owner, number | FREED);
    if (freed == NULL || find(m, owner, number) != NULL) return;
    uint32_t mib = freed->mib, gpu = freed->place & 0xFF, slot = freed->place >> 8;
    if (remove_entry(freed, load(&freed->user))) ledger_evict(m, gpu, slot, owner, mib);
}

bool imports_open(const machine *m, const imported *what, uint64_t user) { return add(m, what, what->number, user); }

void imports_close(const machine *m, const imported *what, uint64_t user) {
    user |= SIMGPU_IDENTITY_READY;
    for (uint32_t i = 0; i < SIMGPU_IMPORTS; i++) {
        simgpu_import *e = entry(m, i);
        if (load(&e->user) != user || e->owner != what->owner || e->number != what->number) continue;
        if (remove_entry(e, user)) break;
    }
    settle(m, what->owner, what->number);
}

bool imports_linger(const machine *m, const imported *what) {
    if (find(m, what->owner, what->number) == NULL || !add(m, what, what->number | FREED, what->owner)) return false;
    settle(m, what->owner, what->number);
    return true;
}

uint32_t imports_kept(const machine *m, uint32_t gpu, uint64_t owner) {
    uint32_t mib = 0;
    for (uint32_t i = 0; i < SIMGPU_IMPORTS; i++) {
        simgpu_import *e = entry(m, i);
        bool open = (load(&e->user) & SIMGPU_IDENTITY_READY) && e->owner == owner && !(e->number & FREED);
        if (open && (e->place & 0xFF) == gpu && find(m, owner, e->number) == e) mib += e->mib; /* once for all users */
    }
    return mib;
}

void imports_sweep(const machine *m, bool (*is_dead)(uint64_t identity)) {
    for (uint32_t i = 0; i < SIMGPU_IMPORTS; i++) {
        simgpu_import *e = entry(m, i);
        uint64_t user = load(&e->user), owner = e->owner, number = e->number & ~FREED;
        if (user == 0 || !is_dead(user) || !remove_entry(e, user)) continue;
        if (user & SIMGPU_IDENTITY_READY) settle(m, owner, number);
    }
}
