#include "shared/shared_allocations.h"

#include "shared/assertion.h"
#include "shared/live_limits.h"

#include <stdatomic.h>

/* What this process wrote into its entries, by their numbers. Others can change the file, so this is what is dropped.
 */
static struct written {
    uint64_t holder; /* 0: the entry is not this process's */
    uint64_t bytes;
    uint32_t device;
} written[LAMINA_SHARES];

struct lamina_share *shared_at(const struct account *account, uint32_t index)
{
    ASSERT(index < LAMINA_SHARES);
    char *slots = (char *)(account->usage + 1);
    return (struct lamina_share *)(slots + (size_t)LAMINA_SLOTS * LAMINA_SLOT_STRIDE(account->limits->device_count)) +
           index;
}

uint32_t shared_index(const struct account *account, const struct lamina_share *share)
{
    ASSERT(share >= shared_at(account, 0) && share <= shared_at(account, LAMINA_SHARES - 1));
    return (uint32_t)(share - shared_at(account, 0));
}

static uint32_t entries_used(const struct account *account)
{
    uint32_t used = atomic_load(&account->usage->shares_used);
    return used < LAMINA_SHARES ? used : LAMINA_SHARES;
}

/* The kind of an entry whose process still holds its slot; 0 for a free or void entry. */
static enum lamina_share_role role_of(const struct account *account, uint64_t holder)
{
    return account_holder_is_valid(account, holder) ? (enum lamina_share_role)(holder >> 48) : 0;
}

/* The device of an entry is read from the file, so it may be anything. */
static bool is_device(const struct account *account, uint32_t device)
{
    return device < account->limits->device_count;
}

static bool is_entry(const struct account *account, uint32_t index, enum lamina_share_role role, uint64_t key)
{
    struct lamina_share *share = shared_at(account, index);
    return role_of(account, atomic_load(&share->holder)) == role && atomic_load(&share->key) == key;
}

bool shared_find_export(const struct account *account, uint64_t key, uint32_t *device, uint64_t *bytes)
{
    uint32_t count = entries_used(account), found = 0;
    for (uint32_t i = 0; i < count && found < 2; i++)
        if (is_entry(account, i, LAMINA_SHARE_OWN, key)) {
            uint32_t on = atomic_load(&shared_at(account, i)->device);
            if (!is_device(account, on))
                continue;
            *device = on;
            *bytes = atomic_load(&shared_at(account, i)->bytes);
            found++;
        }
    return found == 1;
}

uint64_t shared_find(const struct account *account, bool (*matches)(uint64_t key, int argument), int argument,
                     uint32_t *device, uint64_t *bytes)
{
    uint32_t count = entries_used(account);
    for (uint32_t i = 0; i < count; i++) {
        struct lamina_share *share = shared_at(account, i);
        uint64_t key = atomic_load(&share->key);
        *device = atomic_load(&share->device);
        *bytes = atomic_load(&share->bytes);
        if ((is_entry(account, i, LAMINA_SHARE_OWN, key) || is_entry(account, i, LAMINA_SHARE_USE, key)) &&
            is_device(account, *device) && matches(key, argument))
            return key;
    }
    return 0;
}

/* Without an export entry, the first use entry counts for all. */
static bool entry_counts(const struct account *account, uint32_t index, uint64_t key)
{
    uint32_t count = entries_used(account);
    for (uint32_t i = 0; i < count; i++)
        if (is_entry(account, i, LAMINA_SHARE_OWN, key) || (i < index && is_entry(account, i, LAMINA_SHARE_USE, key)))
            return false;
    return true;
}

uint64_t shared_orphaned_bytes(const struct account *account, uint32_t device)
{
    ASSERT(device < account->limits->device_count);
    uint32_t count = entries_used(account);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct lamina_share *share = shared_at(account, i);
        uint64_t bytes = atomic_load(&share->bytes), key = atomic_load(&share->key);
        if (atomic_load(&share->device) == device && is_entry(account, i, LAMINA_SHARE_USE, key) &&
            entry_counts(account, i, key))
            sum = sum > UINT64_MAX - bytes ? UINT64_MAX : sum + bytes;
    }
    return sum;
}

static void raise_used(const struct account *account, uint32_t count)
{
    ASSERT(count <= LAMINA_SHARES);
    _Atomic uint32_t *used = &account->usage->shares_used;
    uint32_t now = atomic_load(used);
    while (now < count && !atomic_compare_exchange_weak(used, &now, count))
        ;
}

static struct lamina_share *add_entry(const struct account *account, struct lamina_slot *slot,
                                      enum lamina_share_role role, uint64_t key, uint32_t device, uint64_t bytes)
{
    ASSERT(role == LAMINA_SHARE_OWN || role == LAMINA_SHARE_USE);
    ASSERT(device < account->limits->device_count);
    uint64_t holder = account_holder(account, slot);
    for (uint32_t i = 0; i < LAMINA_SHARES; i++) {
        struct lamina_share *share = shared_at(account, i);
        uint64_t former = atomic_load(&share->holder);
        if (role_of(account, former) != 0)
            continue;
        raise_used(account, i + 1);
        if (!atomic_compare_exchange_strong(&share->holder, &former,
                                            LAMINA_SHARE_HOLDER(holder, 0, LAMINA_SHARE_FILLING)))
            continue;
        written[i] = (struct written){LAMINA_SHARE_HOLDER(holder, 0, role), bytes, device};
        atomic_store(&share->key, key);
        atomic_store(&share->bytes, bytes);
        atomic_store(&share->device, device);
        atomic_store(&share->holder, written[i].holder);
        return share;
    }
    return NULL;
}

struct lamina_share *shared_export(const struct account *account, struct lamina_slot *slot, uint64_t key,
                                   uint32_t device, uint64_t bytes)
{
    return add_entry(account, slot, LAMINA_SHARE_OWN, key, device, bytes);
}

/* A use is in `total` before its entry exists, so that `total` is never less than what is held if the owner goes. */
static void add_to_total(const struct account *account, struct lamina_slot *slot, uint32_t device, uint64_t bytes)
{
    atomic_fetch_add(&account->usage->devices[device].total, bytes);
    atomic_fetch_add(&account_slot_device(slot, device)->charged, bytes);
}

static void subtract_from_total(const struct account *account, struct lamina_slot *slot, uint32_t device,
                                uint64_t bytes)
{
    atomic_fetch_sub(&account_slot_device(slot, device)->charged, bytes);
    atomic_fetch_sub(&account->usage->devices[device].total, bytes);
}

bool shared_use(const struct account *account, struct lamina_slot *slot, uint64_t key, uint32_t device, uint64_t bytes,
                struct lamina_share **share)
{
    uint64_t owned_bytes;
    uint32_t owned_device;
    *share = NULL;
    if (bytes > live_allowed(account, device))
        return false;
    add_to_total(account, slot, device, bytes);
    *share = add_entry(account, slot, LAMINA_SHARE_USE, key, device, bytes);
    if (*share == NULL) {
        subtract_from_total(account, slot, device, bytes);
        return false;
    }
    if (shared_find_export(account, key, &owned_device, &owned_bytes))
        return true;
    uint64_t held = account_slots_held(account, device);
    if (add_saturating(held, shared_orphaned_bytes(account, device)) > live_allowed(account, device)) {
        shared_drop(account, slot, *share);
        *share = NULL;
    }
    return false;
}

void shared_drop(const struct account *account, struct lamina_slot *slot, struct lamina_share *share)
{
    ASSERT(slot != NULL);
    ASSERT(share != NULL);
    struct written *mine = &written[shared_index(account, share)], was = *mine;
    uint64_t holder = was.holder;
    if (holder == 0)
        return;
    *mine = (struct written){0};
    atomic_compare_exchange_strong(&share->holder, &holder, 0); /* another process may have it already */
    if (was.holder >> 48 == LAMINA_SHARE_USE)
        subtract_from_total(account, slot, was.device, was.bytes);
}
