/* The slots of a container's usage file: where they are, who holds them, and how many bytes they hold. */
#ifndef LAMINA_USAGE_SLOTS_H
#define LAMINA_USAGE_SLOTS_H

#include "lamina_layout.h"

#include <stdbool.h>

struct account {
    struct lamina_usage *usage;
    const struct lamina_limits *limits;
    const struct lamina_arbiter *arbiter; /* NULL: the limits never change */
    const char *path; /* of the usage file, for locks on its slots; NULL: only pids show which owners are alive */
};

struct lamina_slot *account_slot(const struct account *account, uint32_t index);
struct lamina_slot_device *account_slot_device(struct lamina_slot *slot, uint32_t device);

/* The number and generation of a slot as one word. It identifies the slot's owner until the slot is given up; 0
 * identifies no one. */
uint64_t account_holder(const struct account *account, struct lamina_slot *slot);
bool account_holder_is_valid(const struct account *account, uint64_t holder);

/* How many slots may be in use. */
uint32_t account_slot_count(const struct account *account);

/* Whether a process has reserved more for a context on the device than it takes, until it knows. */
bool account_measures(const struct account *account, uint32_t device);

/* Whether the slot's owner had marked its reservation for a context as one of which others may take a part. The mark is
 * gone then, so that only one caller gets true. */
bool account_take_mark(struct lamina_slot *slot, uint32_t device);
void account_mark(struct lamina_slot *slot, uint32_t device);

/* Bytes that one slot holds on a device, and that all slots hold. */
uint64_t account_slot_held(struct lamina_slot *slot, uint32_t device);
uint64_t account_slots_held(const struct account *account, uint32_t device);

/* a + b, or the largest number. */
static inline uint64_t add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* a * b, or the largest number. */
static inline uint64_t multiply_saturating(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#endif
