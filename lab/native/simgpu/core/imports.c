/* Entries for what is open, and one for each allocation that its owner freed meanwhile. The process that removes the
 * last of the former looks for the latter; of several processes the one that removes it gives the memory back. */
#include "core/imports.h"

#include "core/identity.h"
#include "core/ledger.h"

#include <stdatomic.h>

#define FREED (1ull << 63) /* in `number` */

static struct simgpu_import *entry(const struct machine *m, uint32_t i)
{
    return (struct simgpu_import *)((char *)m->head + SIMGPU_IMPORTS_AT) + i;
}

static uint64_t load(const _Atomic uint64_t *at)
{
    return atomic_load(at);
}

static bool remove_entry(struct simgpu_import *e, uint64_t user)
{
    return atomic_compare_exchange_strong(&e->user, &user, 0);
}

/* An entry is filled while its user's identity is marked as not ready. */
static bool add_entry(const struct machine *m, const struct imported *what, uint64_t number, uint64_t user)
{
    for (uint32_t i = 0; i < SIMGPU_IMPORTS; i++) {
        struct simgpu_import *e = entry(m, i);
        uint64_t free = 0, filling = user & ~SIMGPU_IDENTITY_READY;
        if (!atomic_compare_exchange_strong(&e->user, &free, filling))
            continue;
        e->owner = what->owner;
        e->number = number;
        e->mib = what->mib;
        e->place = what->gpu | what->slot << 8;
        atomic_store(&e->user, filling | SIMGPU_IDENTITY_READY);
        return true;
    }
    return false;
}

static struct simgpu_import *find_entry(const struct machine *m, uint64_t owner, uint64_t number)
{
    for (uint32_t i = 0; i < SIMGPU_IMPORTS; i++) {
        struct simgpu_import *e = entry(m, i);
        if ((load(&e->user) & SIMGPU_IDENTITY_READY) && e->owner == owner && e->number == number)
            return e;
    }
    return NULL;
}

static void give_back_if_closed(const struct machine *m, uint64_t owner, uint64_t number)
{
    struct simgpu_import *freed = find_entry(m, owner, number | FREED);
    if (freed == NULL || find_entry(m, owner, number) != NULL)
        return;
    uint32_t mib = freed->mib, gpu = freed->place & 0xFF, slot = freed->place >> 8;
    if (remove_entry(freed, load(&freed->user)))
        ledger_evict(m, gpu, slot, owner, mib);
}

bool imports_open(const struct machine *m, const struct imported *what, uint64_t user)
{
    return add_entry(m, what, what->number, user);
}

void imports_close(const struct machine *m, const struct imported *what, uint64_t user)
{
    user |= SIMGPU_IDENTITY_READY;
    for (uint32_t i = 0; i < SIMGPU_IMPORTS; i++) {
        struct simgpu_import *e = entry(m, i);
        if (load(&e->user) != user || e->owner != what->owner || e->number != what->number)
            continue;
        if (remove_entry(e, user))
            break;
    }
    give_back_if_closed(m, what->owner, what->number);
}

bool imports_mark_freed(const struct machine *m, const struct imported *what)
{
    if (find_entry(m, what->owner, what->number) == NULL || !add_entry(m, what, what->number | FREED, what->owner))
        return false;
    give_back_if_closed(m, what->owner, what->number);
    return true;
}

uint32_t imports_held_by_others(const struct machine *m, uint32_t gpu, uint64_t owner)
{
    uint32_t mib = 0;
    for (uint32_t i = 0; i < SIMGPU_IMPORTS; i++) {
        struct simgpu_import *e = entry(m, i);
        bool open = (load(&e->user) & SIMGPU_IDENTITY_READY) && e->owner == owner && !(e->number & FREED);
        if (open && (e->place & 0xFF) == gpu && find_entry(m, owner, e->number) == e)
            mib += e->mib; /* once for all users */
    }
    return mib;
}

void imports_close_dead(const struct machine *m)
{
    for (uint32_t i = 0; i < SIMGPU_IMPORTS; i++) {
        struct simgpu_import *e = entry(m, i);
        uint64_t user = load(&e->user), owner = e->owner, number = e->number & ~FREED;
        if (user == 0 || !identity_is_dead(user) || !remove_entry(e, user))
            continue;
        if (user & SIMGPU_IDENTITY_READY)
            give_back_if_closed(m, owner, number);
    }
}
