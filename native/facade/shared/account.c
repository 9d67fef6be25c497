#include "shared/account.h"

#include "shared/assertion.h"
#include "shared/live_limits.h"
#include "shared/shared_allocations.h"
#include "shared/slot_lock.h"

#include <stdatomic.h>
#include <string.h>

static uint64_t subtract_saturating(_Atomic uint64_t *from, uint64_t bytes)
{
    uint64_t now = atomic_load(from), left;
    do
        left = now > bytes ? now - bytes : 0;
    while (!atomic_compare_exchange_weak(from, &now, left));
    ASSERT(left <= now);
    return now - left;
}

static void raise_to(_Atomic uint64_t *peak, uint64_t value)
{
    uint64_t now = atomic_load(peak);
    while (now < value && !atomic_compare_exchange_weak(peak, &now, value))
        ;
}

uint64_t account_held(const struct account *account, uint32_t device)
{
    ASSERT(device < account->limits->device_count);
    uint64_t held = account_slots_held(account, device);
    return add_saturating(held, shared_orphaned_bytes(account, device)); /* read after the slots, see its header */
}

uint64_t account_pinned(const struct account *account, uint32_t device)
{
    ASSERT(device < account->limits->device_count);
    uint64_t managed = 0, held;
    uint32_t slots = account_slot_count(account);
    for (uint32_t i = 0; i < slots; i++) {
        struct lamina_slot_device *line = account_slot_device(account_slot(account, i), device);
        managed = add_saturating(managed, atomic_load(&line->bytes[LAMINA_MANAGED]));
        managed = add_saturating(managed, atomic_load(&line->spilled));
    }
    /* Read last, so that what becomes managed in between counts as pinned. */
    held = account_held(account, device);
    return held > managed ? held - managed : 0;
}

void account_spill(struct lamina_slot *slot, uint32_t device, uint64_t bytes)
{
    atomic_fetch_add(&account_slot_device(slot, device)->spilled, bytes);
}

void account_unspill(struct lamina_slot *slot, uint32_t device, uint64_t bytes, uint64_t hosted)
{
    subtract_saturating(&account_slot_device(slot, device)->spilled, bytes);
    if (hosted > 0)
        subtract_saturating(&account_slot_device(slot, device)->hosted, hosted);
}

uint64_t account_hosted(const struct account *account, uint32_t device)
{
    ASSERT(device < account->limits->device_count);
    uint64_t sum = 0;
    uint32_t slots = account_slot_count(account);
    for (uint32_t i = 0; i < slots; i++)
        sum = add_saturating(sum, atomic_load(&account_slot_device(account_slot(account, i), device)->hosted));
    return sum;
}

uint64_t account_charge(const struct account *account, struct lamina_slot *slot, uint32_t device, enum lamina_kind kind,
                        uint64_t bytes)
{
    ASSERT(device < account->limits->device_count);
    ASSERT(kind < LAMINA_KINDS);
    uint64_t limit = live_allowed(account, device);
    struct lamina_usage_device *shared = &account->usage->devices[device];
    struct lamina_slot_device *line = account_slot_device(slot, device);
    if (bytes > limit)
        return add_saturating(account_held(account, device), bytes);
    atomic_fetch_add(&line->bytes[kind], bytes);
    uint64_t total = atomic_fetch_add(&shared->total, bytes) + bytes;
    limit = live_allowed(account, device); /* again, now that the agent sees the request */
    uint64_t asked = total <= limit ? 0 : account_held(account, device);
    if (asked > limit) {
        subtract_saturating(&line->bytes[kind], bytes);
        atomic_fetch_sub(&shared->total, bytes);
        return asked;
    }
    atomic_fetch_add(&line->charged, bytes);
    if (kind != LAMINA_CONTEXT) /* reserved amply until its cost is known; see account_note_peak */
        raise_to(&shared->peak, asked == 0 ? total : asked);
    return 0;
}

void account_note_peak(const struct account *account, uint32_t device)
{
    ASSERT(device < account->limits->device_count);
    uint64_t held = account_held(account, device);
    if (held <= live_allowed(account, device))
        raise_to(&account->usage->devices[device].peak, held);
}

void account_add(const struct account *account, struct lamina_slot *slot, uint32_t device, enum lamina_kind kind,
                 uint64_t bytes)
{
    ASSERT(device < account->limits->device_count);
    ASSERT(kind < LAMINA_KINDS);
    struct lamina_slot_device *line = account_slot_device(slot, device);
    atomic_fetch_add(&line->bytes[kind], bytes);
    atomic_fetch_add(&account->usage->devices[device].total, bytes);
    atomic_fetch_add(&line->charged, bytes);
}

void account_discharge(const struct account *account, struct lamina_slot *slot, uint32_t device, enum lamina_kind kind,
                       uint64_t bytes)
{
    ASSERT(device < account->limits->device_count);
    ASSERT(kind < LAMINA_KINDS);
    struct lamina_slot_device *line = account_slot_device(slot, device);
    uint64_t taken = subtract_saturating(&line->charged, bytes);
    subtract_saturating(&line->bytes[kind], bytes);
    atomic_fetch_sub(&account->usage->devices[device].total, taken);
}

static void raise_slots_used(const struct account *account, uint32_t count)
{
    ASSERT(count <= LAMINA_SLOTS);
    _Atomic uint32_t *used = &account->usage->slots_used;
    uint32_t now = atomic_load(used);
    while (now < count && !atomic_compare_exchange_weak(used, &now, count))
        ;
}

static uint64_t offset_of(const struct account *account, const struct lamina_slot *slot)
{
    return (uint64_t)((const char *)slot - (const char *)account->usage);
}

struct lamina_slot *account_join(const struct account *account, const struct identity *self, int file)
{
    ASSERT(self->owner != 0 && (self->owner & LAMINA_OWNER_CLEARING) == 0);
    ASSERT(self->image != 0);
    for (uint32_t i = 0; i < LAMINA_SLOTS; i++) {
        struct lamina_slot *slot = account_slot(account, i);
        uint64_t free = 0;
        if (atomic_load(&slot->owner) != 0)
            continue;
        enum slot_lock lock = slot_lock(file, offset_of(account, slot));
        if (lock == SLOT_TAKEN || lock == SLOT_LOCK_FAILED)
            continue;
        raise_slots_used(account, i + 1);
        if (!atomic_compare_exchange_strong(&slot->owner, &free, self->owner)) {
            slot_unlock(file, offset_of(account, slot));
            continue;
        }
        atomic_fetch_add(&slot->generation, 1);
        atomic_store(&slot->measures, 0);
        memcpy(slot->name, self->name, sizeof slot->name);
        atomic_store(&slot->stack, self->stack);
        atomic_store(&slot->image, self->image);
        return slot;
    }
    return NULL;
}

static void clear_compute(struct lamina_slot_compute *compute)
{
    atomic_store(&compute->busy_since, 0);
    atomic_store(&compute->asked_at, 0);
    atomic_store(&compute->waited_at, 0);
    atomic_store(&compute->busy_ns, 0);
}

/* Clears a slot that this process claimed. If it dies half-way, the next process finds a dead owner and continues. */
static void slot_clear(const struct account *account, struct lamina_slot *slot)
{
    for (uint32_t device = 0; device < account->limits->device_count; device++) {
        struct lamina_slot_device *line = account_slot_device(slot, device);
        uint64_t charged = atomic_exchange(&line->charged, 0);
        for (int kind = 0; kind < LAMINA_KINDS; kind++)
            atomic_store(&line->bytes[kind], 0);
        atomic_fetch_sub(&account->usage->devices[device].total, charged);
        atomic_store(&line->spilled, 0);
        atomic_store(&line->hosted, 0);
        clear_compute(&line->compute);
    }
    atomic_store(&slot->image, 0);
    atomic_store(&slot->stack, 0);
    memset(slot->name, 0, sizeof slot->name);
    atomic_fetch_add(&slot->generation, 1); /* voids all entries of the owner in the table of shared allocations */
}

/* An earlier image of this same process had the slot; exec freed its memory. */
static bool is_left_by_exec(struct lamina_slot *slot, const struct identity *self)
{
    uint64_t image = atomic_load(&slot->image);
    return atomic_load(&slot->owner) == self->owner && image != 0 && image != self->image;
}

/* True also for every owner in another pid namespace: there slot_reclaim decides, by the slot's lock. */
static bool may_be_dead(struct lamina_slot *slot, const struct identity *self)
{
    uint64_t owner = atomic_load(&slot->owner);
    return owner != 0 && (owner & ~LAMINA_OWNER_CLEARING) != self->owner &&
           (owner_is_in_other_namespace(owner, self) || owner_is_dead(owner, atomic_load(&slot->stack), self));
}

/* Clears a slot while holding its lock, so that no other process clears or takes it, in whatever pid namespace. */
static uint32_t slot_reclaim(const struct account *account, struct lamina_slot *slot, uint64_t owner,
                             const struct identity *self, int file)
{
    ASSERT((self->owner & LAMINA_OWNER_CLEARING) == 0);
    uint64_t mine = self->owner | LAMINA_OWNER_CLEARING, offset = offset_of(account, slot);
    uint32_t freed = 0;
    enum slot_lock lock = slot_lock(file, offset);
    if (lock != SLOT_LOCKED && (lock != SLOT_NO_LOCKS || owner_is_in_other_namespace(owner, self)))
        return 0;
    if (atomic_compare_exchange_strong(&slot->owner, &owner, mine)) {
        slot_clear(account, slot);
        freed = atomic_compare_exchange_strong(&slot->owner, &mine, 0);
    }
    slot_unlock(file, offset);
    return freed;
}

uint32_t account_reclaim(const struct account *account, const struct identity *self, uint32_t limit)
{
    enum { NOT_OPENED = -2 };
    uint32_t slots = account_slot_count(account), freed = 0;
    int file = NOT_OPENED;
    uint32_t first = limit >= slots ? 0 : atomic_fetch_add(&account->usage->sweep, limit);
    for (uint32_t i = 0; i < slots; i++) {
        struct lamina_slot *slot = account_slot(account, (first + i) % slots);
        uint64_t owner = atomic_load(&slot->owner);
        if (!is_left_by_exec(slot, self) && (i >= limit || !may_be_dead(slot, self)))
            continue;
        if (file == NOT_OPENED)
            file = slot_lock_open(account->path);
        freed += slot_reclaim(account, slot, owner, self, file);
    }
    ASSERT(freed <= slots);
    slot_lock_close(file);
    return freed;
}
