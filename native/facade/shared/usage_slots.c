#include "shared/usage_slots.h"

#include "shared/assertion.h"

#include <stdatomic.h>

struct lamina_slot *account_slot(const struct account *account, uint32_t index)
{
    ASSERT(index < LAMINA_SLOTS);
    char *slots = (char *)(account->usage + 1);
    return (struct lamina_slot *)(slots + (size_t)index * LAMINA_SLOT_STRIDE(account->limits->device_count));
}

struct lamina_slot_device *account_slot_device(struct lamina_slot *slot, uint32_t device)
{
    ASSERT(slot != NULL);
    ASSERT(device < LAMINA_MAX_DEVICES);
    return (struct lamina_slot_device *)(slot + 1) + device;
}

uint64_t account_holder(const struct account *account, struct lamina_slot *slot)
{
    size_t stride = LAMINA_SLOT_STRIDE(account->limits->device_count);
    uint64_t number = (uint64_t)((char *)slot - (char *)account_slot(account, 0)) / stride;
    ASSERT(number < LAMINA_SLOTS);
    ASSERT(((char *)slot - (char *)account_slot(account, 0)) % (ptrdiff_t)stride == 0);
    return LAMINA_SHARE_HOLDER(number, atomic_load(&slot->generation), 0);
}

bool account_holder_is_valid(const struct account *account, uint64_t holder)
{
    uint32_t slot = holder & 0xffff, generation = (uint32_t)(holder >> 16);
    if (holder == 0 || slot >= LAMINA_SLOTS)
        return false;
    struct lamina_slot *of = account_slot(account, slot);
    uint64_t owner = atomic_load(&of->owner);
    return owner != 0 && (owner & LAMINA_OWNER_CLEARING) == 0 && atomic_load(&of->generation) == generation;
}

uint32_t account_slot_count(const struct account *account)
{
    uint32_t used = atomic_load(&account->usage->slots_used);
    return used < LAMINA_SLOTS ? used : LAMINA_SLOTS;
}

bool account_measures(const struct account *account, uint32_t device)
{
    uint32_t slots = account_slot_count(account);
    for (uint32_t i = 0; i < slots; i++) {
        struct lamina_slot *slot = account_slot(account, i);
        uint64_t owner = atomic_load(&slot->owner);
        if (owner != 0 && (owner & LAMINA_OWNER_CLEARING) == 0 && (atomic_load(&slot->measures) >> device & 1) != 0)
            return true;
    }
    return false;
}

static uint32_t mark_of(uint32_t device)
{
    ASSERT(device < LAMINA_MAX_DEVICES);
    return UINT32_C(1) << (LAMINA_MAX_DEVICES + device);
}

void account_mark(struct lamina_slot *slot, uint32_t device)
{
    atomic_fetch_or(&slot->measures, mark_of(device));
}

bool account_take_mark(struct lamina_slot *slot, uint32_t device)
{
    return (atomic_fetch_and(&slot->measures, ~mark_of(device)) & mark_of(device)) != 0;
}

uint64_t account_slot_held(struct lamina_slot *slot, uint32_t device)
{
    struct lamina_slot_device *line = account_slot_device(slot, device);
    uint64_t held = 0;
    for (int kind = 0; kind < LAMINA_KINDS; kind++)
        held = add_saturating(held, atomic_load(&line->bytes[kind]));
    return held;
}

uint64_t account_slots_held(const struct account *account, uint32_t device)
{
    uint64_t held = 0;
    uint32_t slots = account_slot_count(account);
    for (uint32_t i = 0; i < slots; i++)
        held = add_saturating(held, account_slot_held(account_slot(account, i), device));
    return held;
}
