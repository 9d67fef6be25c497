#include "core/slots.h"

#include "core/cgroups.h"
#include "core/identity.h"
#include "core/imports.h"
#include "core/ledger.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define JOIN_PAUSE_NS 5000000 /* so that processes that start together do not all search for dead ones */

static void release_slot(const struct machine *m, uint32_t slot, uint64_t identity)
{
    struct simgpu_process *process = &m->processes[slot];
    bool kept = false; /* by processes that have memory of this one open; then the slot stays too */
    for (uint32_t gpu = 0; gpu < m->head->unit_count; gpu++) {
        uint32_t mib = imports_held_by_others(m, gpu, identity);
        ledger_reduce_to(m, gpu, slot, identity, mib);
        kept = kept || mib > 0;
    }
    if (kept)
        return;
    /* From here on what the process left in its queue gets no GPU time. */
    atomic_compare_exchange_strong(&process->identity, &identity, 0);
}

void slots_sweep(const struct machine *m, uint64_t pause_ns)
{
    uint64_t now = machine_now();
    uint64_t last = atomic_load(&m->head->swept_at);
    if (pause_ns == 0)
        atomic_store(&m->head->swept_at, now);
    else if (now - last < pause_ns || !atomic_compare_exchange_strong(&m->head->swept_at, &last, now))
        return; /* another process just did, or is doing so */
    imports_close_dead(m);
    for (uint32_t slot = 0; slot < machine_slots_used(m); slot++) {
        uint64_t identity = atomic_load(&m->processes[slot].identity);
        if (identity != 0 && identity_is_dead(identity))
            release_slot(m, slot, identity);
    }
}

/* The kernel gives every execve 16 random bytes; threads and copies of this library in one program see the same. */
static uint64_t read_own_image(void)
{
    const unsigned char *random = (const unsigned char *)getauxval(AT_RANDOM);
    uint64_t image = 0;
    if (random != NULL)
        memcpy(&image, random, sizeof image);
    return image;
}

static void release_slot_of_previous_image(const struct machine *m, uint64_t identity, uint64_t image)
{
    for (uint32_t slot = 0; slot < machine_slots_used(m); slot++) {
        uint64_t owner = atomic_load(&m->processes[slot].identity);
        if (owner == (identity | SIMGPU_IDENTITY_READY) && m->processes[slot].image != image)
            release_slot(m, slot, owner);
    }
}

static void fill_slot(const struct machine *m, uint32_t slot, uint64_t image)
{
    struct simgpu_process *process = &m->processes[slot];
    process->image = image;
    process->since_ns = machine_now();
    memset(process->name, 0, sizeof process->name);
    ssize_t length = readlink("/proc/self/exe", process->name, sizeof process->name - 1);
    if (length < 0)
        process->name[0] = '\0';
    uint64_t cgroup = cgroup_of_self();
    for (uint32_t gpu = 0; gpu < m->head->unit_count; gpu++) {
        struct simgpu_cell *cell = machine_cell(m, gpu, slot);
        uint64_t executed = simgpu_half(&cell->executed.low);
        cell->base = executed;
        cell->ready_at = 0;
        cell->contexts = 0;
        atomic_store(&cell->managed, 0);
        cell->touched_at = 0;
        cell->launches = 0;
        atomic_store(&cell->mps, 0);
        cell->cgroup = cgroup;
        atomic_store(&cell->work, executed);
    }
}

static void raise_slots_used(const struct machine *m, uint32_t count)
{
    uint32_t seen = atomic_load(&m->head->slots_used);
    _Atomic uint32_t *at = &m->head->slots_used;
    while (seen < count && !atomic_compare_exchange_strong(at, &seen, count)) {
    }
}

static uint32_t take_slot(const struct machine *m, uint64_t identity, uint64_t image)
{
    for (uint32_t slot = 0; slot < SIMGPU_SLOTS; slot++) {
        uint64_t free_slot = 0;
        _Atomic uint64_t *at = &m->processes[slot].identity;
        if (atomic_load(at) != 0)
            continue;
        /* Visible to processes that sweep before it can own anything. */
        raise_slots_used(m, slot + 1);
        if (!atomic_compare_exchange_strong(at, &free_slot, identity))
            continue;
        fill_slot(m, slot, image);
        atomic_store(at, identity | SIMGPU_IDENTITY_READY);
        return slot;
    }
    return UINT32_MAX;
}

uint32_t slots_join(const struct machine *m)
{
    uint64_t identity = identity_of_self(), image = read_own_image();
    release_slot_of_previous_image(m, identity, image);
    slots_sweep(m, JOIN_PAUSE_NS);
    uint32_t slot = take_slot(m, identity, image);
    if (slot != UINT32_MAX)
        return slot;
    slots_sweep(m, 0);
    return take_slot(m, identity, image);
}

void slots_leave(const struct machine *m, uint32_t slot)
{
    release_slot(m, slot, atomic_load(&m->processes[slot].identity));
}

bool slots_is_ready(const struct machine *m, uint32_t slot)
{
    return (atomic_load(&m->processes[slot].identity) & SIMGPU_IDENTITY_READY) != 0;
}

bool slots_is_dead(const struct machine *m, uint32_t slot)
{
    return identity_is_dead(atomic_load(&m->processes[slot].identity));
}

uint32_t slots_pid(const struct machine *m, uint32_t slot)
{
    return identity_pid(atomic_load(&m->processes[slot].identity));
}

uint64_t slots_cgroup_bytes(const struct machine *m, uint64_t cgroup, uint32_t gpu)
{
    uint64_t mib = 0;
    for (uint32_t slot = 0; slot < machine_slots_used(m); slot++) {
        struct simgpu_cell *cell = machine_cell(m, gpu, slot);
        if (cell->cgroup != cgroup || slots_pid(m, slot) == 0)
            continue;
        uint32_t managed = (uint32_t)atomic_load(&cell->managed), held = ledger_held(m, gpu, slot);
        mib += held > managed ? held - managed : 0;
    }
    return mib << 20;
}
