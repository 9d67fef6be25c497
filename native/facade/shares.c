#include "shares.h"

#include <stdatomic.h>

#define ATOMIC(pointer) ((_Atomic __typeof__(*(pointer)) *)(pointer))

struct lamina_share *shares_at(const struct account *account, uint32_t index)
{
    char *slots = (char *)(account->usage + 1);
    return (struct lamina_share *)(slots + (size_t)LAMINA_SLOTS * LAMINA_SLOT_STRIDE(account->limits->device_count)) +
           index;
}

uint32_t shares_index(const struct account *account, const struct lamina_share *share)
{
    return (uint32_t)(share - shares_at(account, 0));
}

static uint32_t shares_count(const struct account *account)
{
    uint32_t used = atomic_load(ATOMIC(&account->usage->shares_used));
    return used < LAMINA_SHARES ? used : LAMINA_SHARES;
}

/* What is said by a process that still holds its slot; 0 when nobody says anything. */
static enum lamina_share_role role_of(const struct account *account, uint64_t holder)
{
    return account_word_stands(account, holder) ? (enum lamina_share_role)(holder >> 48) : 0;
}

static bool says(const struct account *account, uint32_t index, enum lamina_share_role role, uint64_t key)
{
    struct lamina_share *share = shares_at(account, index);
    return role_of(account, atomic_load(ATOMIC(&share->holder))) == role && atomic_load(ATOMIC(&share->key)) == key;
}

bool shares_owned(const struct account *account, uint64_t key, uint32_t *device, uint64_t *bytes)
{
    uint32_t count = shares_count(account), found = 0;
    for (uint32_t i = 0; i < count && found < 2; i++)
        if (says(account, i, LAMINA_SHARE_OWN, key)) {
            *device = shares_at(account, i)->device;
            *bytes = shares_at(account, i)->bytes;
            found++;
        }
    return found == 1;
}

uint64_t shares_find(const struct account *account, bool (*is)(uint64_t key, int with), int with, uint32_t *device,
                     uint64_t *bytes)
{
    uint32_t count = shares_count(account);
    for (uint32_t i = 0; i < count; i++) {
        struct lamina_share *share = shares_at(account, i);
        uint64_t key = atomic_load(ATOMIC(&share->key));
        *device = atomic_load(ATOMIC(&share->device));
        *bytes = atomic_load(ATOMIC(&share->bytes));
        if ((says(account, i, LAMINA_SHARE_OWN, key) || says(account, i, LAMINA_SHARE_USE, key)) && is(key, with))
            return key;
    }
    return 0;
}

/* The first use speaks for all. */
static bool counts(const struct account *account, uint32_t index, uint64_t key)
{
    uint32_t count = shares_count(account);
    for (uint32_t i = 0; i < count; i++)
        if (says(account, i, LAMINA_SHARE_OWN, key) || (i < index && says(account, i, LAMINA_SHARE_USE, key)))
            return false;
    return true;
}

uint64_t shares_orphaned(const struct account *account, uint32_t device)
{
    uint32_t count = shares_count(account);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct lamina_share *share = shares_at(account, i);
        uint64_t bytes = atomic_load(ATOMIC(&share->bytes)), key = atomic_load(ATOMIC(&share->key));
        if (share->device == device && says(account, i, LAMINA_SHARE_USE, key) && counts(account, i, key))
            sum = sum > UINT64_MAX - bytes ? UINT64_MAX : sum + bytes;
    }
    return sum;
}

static void used_at_least(const struct account *account, uint32_t count)
{
    uint32_t *used = &account->usage->shares_used;
    uint32_t now = atomic_load(ATOMIC(used));
    while (now < count && !atomic_compare_exchange_weak(ATOMIC(used), &now, count))
        ;
}

static struct lamina_share *say(const struct account *account, struct lamina_slot *slot, enum lamina_share_role role,
                                uint64_t key, uint32_t device, uint64_t bytes)
{
    uint64_t word = account_word(account, slot);
    for (uint32_t i = 0; i < LAMINA_SHARES; i++) {
        struct lamina_share *share = shares_at(account, i);
        uint64_t former = atomic_load(ATOMIC(&share->holder));
        if (role_of(account, former) != 0)
            continue;
        used_at_least(account, i + 1);
        if (!atomic_compare_exchange_strong(ATOMIC(&share->holder), &former,
                                            LAMINA_SHARE_HOLDER(word, 0, LAMINA_SHARE_FILLING)))
            continue;
        atomic_store(ATOMIC(&share->key), key);
        atomic_store(ATOMIC(&share->bytes), bytes);
        atomic_store(ATOMIC(&share->device), device);
        atomic_store(ATOMIC(&share->holder), LAMINA_SHARE_HOLDER(word, 0, role));
        return share;
    }
    return NULL;
}

struct lamina_share *shares_own(const struct account *account, struct lamina_slot *slot, uint64_t key, uint32_t device,
                                uint64_t bytes)
{
    return say(account, slot, LAMINA_SHARE_OWN, key, device, bytes);
}

/* A use is in `total` from before it is said, so that `total` stays no less than what is held if the owner goes. */
static void in_total(const struct account *account, struct lamina_slot *slot, uint32_t device, uint64_t bytes)
{
    atomic_fetch_add(ATOMIC(&account->usage->devices[device].total), bytes);
    atomic_fetch_add(ATOMIC(&account_line(account, slot, device)->charged), bytes);
}

static void out_of_total(const struct account *account, struct lamina_slot *slot, uint32_t device, uint64_t bytes)
{
    atomic_fetch_sub(ATOMIC(&account_line(account, slot, device)->charged), bytes);
    atomic_fetch_sub(ATOMIC(&account->usage->devices[device].total), bytes);
}

bool shares_use(const struct account *account, struct lamina_slot *slot, uint64_t key, uint32_t device, uint64_t bytes,
                struct lamina_share **share)
{
    uint64_t limit = account->limits->devices[device].memory_bytes, owned_bytes;
    uint32_t owned_device;
    *share = NULL;
    if (bytes > limit)
        return false;
    in_total(account, slot, device, bytes);
    *share = say(account, slot, LAMINA_SHARE_USE, key, device, bytes);
    if (*share == NULL) {
        out_of_total(account, slot, device, bytes);
        return false;
    }
    if (shares_owned(account, key, &owned_device, &owned_bytes))
        return true;
    if (account_held(account, device) > limit) {
        shares_drop(account, slot, *share);
        *share = NULL;
    }
    return false;
}

void shares_drop(const struct account *account, struct lamina_slot *slot, struct lamina_share *share)
{
    uint64_t bytes = atomic_load(ATOMIC(&share->bytes));
    uint32_t device = atomic_load(ATOMIC(&share->device));
    bool use = atomic_load(ATOMIC(&share->holder)) >> 48 == LAMINA_SHARE_USE;
    atomic_store(ATOMIC(&share->holder), 0);
    if (use)
        out_of_total(account, slot, device, bytes);
}
