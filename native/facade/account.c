#include "account.h"

#include "shares.h"
#include "slot_lock.h"

#include <stdatomic.h>
#include <string.h>

#define ATOMIC(pointer) ((_Atomic __typeof__(*(pointer)) *)(pointer))

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t take_saturating(uint64_t *from, uint64_t bytes)
{
    uint64_t now = atomic_load(ATOMIC(from)), left;
    do
        left = now > bytes ? now - bytes : 0;
    while (!atomic_compare_exchange_weak(ATOMIC(from), &now, left));
    return now - left;
}

static void raise_to(uint64_t *peak, uint64_t value)
{
    uint64_t now = atomic_load_explicit(ATOMIC(peak), memory_order_relaxed);
    while (now < value && !atomic_compare_exchange_weak(ATOMIC(peak), &now, value))
        ;
}

struct lamina_slot *account_slot(const struct account *account, uint32_t index)
{
    char *slots = (char *)(account->usage + 1);
    return (struct lamina_slot *)(slots + (size_t)index * LAMINA_SLOT_STRIDE(account->limits->device_count));
}

struct lamina_slot_device *account_line(const struct account *account, struct lamina_slot *slot, uint32_t device)
{
    (void)account;
    return (struct lamina_slot_device *)(slot + 1) + device;
}

uint64_t account_word(const struct account *account, struct lamina_slot *slot)
{
    size_t stride = LAMINA_SLOT_STRIDE(account->limits->device_count);
    uint64_t number = (uint64_t)((char *)slot - (char *)account_slot(account, 0)) / stride;
    return LAMINA_SHARE_HOLDER(number, atomic_load(ATOMIC(&slot->generation)), 0);
}

bool account_word_stands(const struct account *account, uint64_t word)
{
    uint32_t slot = word & 0xffff, generation = (uint32_t)(word >> 16);
    if (word == 0 || slot >= LAMINA_SLOTS)
        return false;
    struct lamina_slot *of = account_slot(account, slot);
    uint64_t owner = atomic_load(ATOMIC(&of->owner));
    return owner != 0 && (owner & LAMINA_OWNER_CLEARING) == 0 &&
           atomic_load(ATOMIC(&of->generation)) == generation;
}

uint32_t account_slots(const struct account *account)
{
    uint32_t used = atomic_load(ATOMIC(&account->usage->slots_used));
    return used < LAMINA_SLOTS ? used : LAMINA_SLOTS;
}

uint64_t account_slot_held(const struct account *account, struct lamina_slot *slot, uint32_t device)
{
    struct lamina_slot_device *line = account_line(account, slot, device);
    uint64_t held = 0;
    for (int kind = 0; kind < LAMINA_KINDS; kind++)
        held = add_saturating(held, atomic_load(ATOMIC(&line->bytes[kind])));
    return held;
}

uint64_t account_held(const struct account *account, uint32_t device)
{
    uint64_t held = 0;
    uint32_t slots = account_slots(account);
    for (uint32_t i = 0; i < slots; i++)
        held = add_saturating(held, account_slot_held(account, account_slot(account, i), device));
    return add_saturating(held, shares_orphaned(account, device));
}

uint64_t account_pinned(const struct account *account, uint32_t device)
{
    uint64_t managed = 0, held;
    uint32_t slots = account_slots(account);
    for (uint32_t i = 0; i < slots; i++) {
        struct lamina_slot_device *line = account_line(account, account_slot(account, i), device);
        managed = add_saturating(managed, atomic_load(ATOMIC(&line->bytes[LAMINA_MANAGED])));
        managed = add_saturating(managed, atomic_load(ATOMIC(&line->spilled)));
    }
    /* Read last: what becomes managed meanwhile is then taken as pinned. */
    held = account_held(account, device);
    return held > managed ? held - managed : 0;
}

void account_spill(const struct account *account, struct lamina_slot *slot, uint32_t device, uint64_t bytes)
{
    atomic_fetch_add(ATOMIC(&account_line(account, slot, device)->spilled), bytes);
}

void account_unspill(const struct account *account, struct lamina_slot *slot, uint32_t device, uint64_t bytes)
{
    take_saturating(&account_line(account, slot, device)->spilled, bytes);
}

uint64_t account_charge(const struct account *account, struct lamina_slot *slot, uint32_t device,
                        enum lamina_kind kind, uint64_t bytes)
{
    const uint64_t limit = account->limits->devices[device].memory_bytes;
    struct lamina_usage_device *shared = &account->usage->devices[device];
    struct lamina_slot_device *line = account_line(account, slot, device);
    if (bytes > limit)
        return add_saturating(account_held(account, device), bytes);
    atomic_fetch_add(ATOMIC(&line->bytes[kind]), bytes);
    uint64_t total = atomic_fetch_add(ATOMIC(&shared->total), bytes) + bytes;
    uint64_t asked = total <= limit ? 0 : account_held(account, device);
    if (asked > limit) {
        take_saturating(&line->bytes[kind], bytes);
        atomic_fetch_sub(ATOMIC(&shared->total), bytes);
        return asked;
    }
    atomic_fetch_add(ATOMIC(&line->charged), bytes);
    raise_to(&shared->peak, asked == 0 ? total : asked);
    return 0;
}

void account_add(const struct account *account, struct lamina_slot *slot, uint32_t device, enum lamina_kind kind,
                 uint64_t bytes)
{
    struct lamina_slot_device *line = account_line(account, slot, device);
    atomic_fetch_add(ATOMIC(&line->bytes[kind]), bytes);
    atomic_fetch_add(ATOMIC(&account->usage->devices[device].total), bytes);
    atomic_fetch_add(ATOMIC(&line->charged), bytes);
}

void account_discharge(const struct account *account, struct lamina_slot *slot, uint32_t device, enum lamina_kind kind,
                       uint64_t bytes)
{
    struct lamina_slot_device *line = account_line(account, slot, device);
    uint64_t taken = take_saturating(&line->charged, bytes);
    take_saturating(&line->bytes[kind], bytes);
    atomic_fetch_sub(ATOMIC(&account->usage->devices[device].total), taken);
}

static void slots_used_at_least(const struct account *account, uint32_t count)
{
    uint32_t *used = &account->usage->slots_used;
    uint32_t now = atomic_load(ATOMIC(used));
    while (now < count && !atomic_compare_exchange_weak(ATOMIC(used), &now, count))
        ;
}

static uint64_t offset_of(const struct account *account, const struct lamina_slot *slot)
{
    return (uint64_t)((const char *)slot - (const char *)account->usage);
}

struct lamina_slot *account_join(const struct account *account, const struct identity *self, int file)
{
    for (uint32_t i = 0; i < LAMINA_SLOTS; i++) {
        struct lamina_slot *slot = account_slot(account, i);
        uint64_t free = 0;
        if (atomic_load(ATOMIC(&slot->owner)) != 0)
            continue;
        enum slot_lock lock = slot_lock(file, offset_of(account, slot));
        if (lock == SLOT_TAKEN || lock == SLOT_LOCK_FAILED)
            continue;
        slots_used_at_least(account, i + 1);
        if (!atomic_compare_exchange_strong(ATOMIC(&slot->owner), &free, self->owner)) {
            slot_unlock(file, offset_of(account, slot));
            continue;
        }
        atomic_fetch_add(ATOMIC(&slot->generation), 1);
        memcpy(slot->name, self->name, sizeof slot->name);
        atomic_store(ATOMIC(&slot->stack), self->stack);
        atomic_store(ATOMIC(&slot->image), self->image);
        return slot;
    }
    return NULL;
}

/* The slot is ours to clear: if we die half-way, the next one finds a dead owner again and goes on. */
static void slot_clear(const struct account *account, struct lamina_slot *slot)
{
    for (uint32_t device = 0; device < account->limits->device_count; device++) {
        struct lamina_slot_device *line = account_line(account, slot, device);
        uint64_t charged = atomic_exchange(ATOMIC(&line->charged), 0);
        for (int kind = 0; kind < LAMINA_KINDS; kind++)
            atomic_store(ATOMIC(&line->bytes[kind]), 0);
        atomic_fetch_sub(ATOMIC(&account->usage->devices[device].total), charged);
        atomic_store(ATOMIC(&line->spilled), 0);
        line->compute = (struct lamina_slot_compute){0};
    }
    atomic_store(ATOMIC(&slot->image), 0);
    atomic_store(ATOMIC(&slot->stack), 0);
    memset(slot->name, 0, sizeof slot->name);
    atomic_fetch_add(ATOMIC(&slot->generation), 1); /* what the owner said of shared memory is void for good */
}

/* An earlier image of this very process had the slot; exec gave its memory back. */
static bool left_by_exec(struct lamina_slot *slot, const struct identity *self)
{
    uint64_t image = atomic_load(ATOMIC(&slot->image));
    return atomic_load(ATOMIC(&slot->owner)) == self->owner && image != 0 && image != self->image;
}

/* An owner of another pid namespace is dead when nobody holds its slot's lock, which slot_reclaim finds out. */
static bool left_by_death(struct lamina_slot *slot, const struct identity *self)
{
    uint64_t owner = atomic_load(ATOMIC(&slot->owner));
    return owner != 0 && (owner & ~LAMINA_OWNER_CLEARING) != self->owner &&
           (owner_is_foreign(owner, self) || owner_is_dead(owner, atomic_load(ATOMIC(&slot->stack)), self));
}

/* Clears a slot whose lock is ours, so that nobody else takes our hand off it, whatever its pid namespace. */
static uint32_t slot_reclaim(const struct account *account, struct lamina_slot *slot, uint64_t owner,
                             const struct identity *self, int file)
{
    uint64_t mine = self->owner | LAMINA_OWNER_CLEARING, offset = offset_of(account, slot);
    uint32_t freed = 0;
    enum slot_lock lock = slot_lock(file, offset);
    if (lock != SLOT_LOCKED && (lock != SLOT_NO_LOCKS || owner_is_foreign(owner, self)))
        return 0;
    if (atomic_compare_exchange_strong(ATOMIC(&slot->owner), &owner, mine)) {
        slot_clear(account, slot);
        freed = atomic_compare_exchange_strong(ATOMIC(&slot->owner), &mine, 0);
    }
    slot_unlock(file, offset);
    return freed;
}

uint32_t account_reclaim(const struct account *account, const struct identity *self, uint32_t most)
{
    uint32_t slots = account_slots(account), freed = 0;
    int file = -2; /* opened when the first slot needs it */
    uint32_t first = most >= slots ? 0 : atomic_fetch_add(ATOMIC(&account->usage->sweep), most);
    for (uint32_t i = 0; i < slots; i++) {
        struct lamina_slot *slot = account_slot(account, (first + i) % slots);
        uint64_t owner = atomic_load(ATOMIC(&slot->owner));
        if (!left_by_exec(slot, self) && (i >= most || !left_by_death(slot, self)))
            continue;
        if (file == -2)
            file = slot_lock_open(account->path);
        freed += slot_reclaim(account, slot, owner, self, file);
    }
    slot_lock_close(file);
    return freed;
}
