/* The account of a container's memory, kept in its usage file by all of its processes at once.
 *
 * A request is first announced in the process's own slot, then weighed, and only then goes to the driver. Two that
 * race both see each other's announcement, so the limit is never passed; at worst both are refused. `total` only
 * saves the walk over slots: a request that fits by `total` is within the limit, for `total` is never less than what
 * is held. A process killed between two steps leaves `total` too high; then the sum over slots decides. */
#ifndef LAMINA_ACCOUNT_H
#define LAMINA_ACCOUNT_H

#include "lamina_layout.h"
#include "owner.h"

#include <stdbool.h>

struct account {
    struct lamina_usage *usage;
    const struct lamina_limits *limits;
    const char *path; /* of the usage file, for locks on its slots; NULL: pids alone tell who lives */
};

struct lamina_slot *account_slot(const struct account *account, uint32_t index);
struct lamina_slot_device *account_line(const struct account *account, struct lamina_slot *slot, uint32_t device);

/* The number and generation of a slot as one word, which names its owner as long as that holds it; 0 names nobody. */
uint64_t account_word(const struct account *account, struct lamina_slot *slot);
bool account_word_stands(const struct account *account, uint64_t word);

/* How many slots may be in use. */
uint32_t account_slots(const struct account *account);

/* What all processes hold on a device, and what one slot does. */
uint64_t account_held(const struct account *account, uint32_t device);
uint64_t account_slot_held(const struct account *account, struct lamina_slot *slot, uint32_t device);

/* What of it stays on the GPU: all but managed memory, asked for as such or made in place of plain memory. */
uint64_t account_pinned(const struct account *account, uint32_t device);

/* So many bytes of what the slot holds are managed memory in place of plain; or are so no longer. */
void account_spill(const struct account *account, struct lamina_slot *slot, uint32_t device, uint64_t bytes);
void account_unspill(const struct account *account, struct lamina_slot *slot, uint32_t device, uint64_t bytes);

/* Adds to the slot when the container stays within its limit and returns 0; else changes nothing and returns what
 * would have been held. */
uint64_t account_charge(const struct account *account, struct lamina_slot *slot, uint32_t device,
                        enum lamina_kind kind, uint64_t bytes);

/* Adds what is already held, whatever the limit. */
void account_add(const struct account *account, struct lamina_slot *slot, uint32_t device, enum lamina_kind kind,
                 uint64_t bytes);

/* Takes back a charge, never below zero. */
void account_discharge(const struct account *account, struct lamina_slot *slot, uint32_t device, enum lamina_kind kind,
                       uint64_t bytes);

/* Takes a free slot and its lock through `file`, of slot_lock_open; or NULL when there is none. */
struct lamina_slot *account_join(const struct account *account, const struct identity *self, int file);

/* Frees the slots of dead processes, at most `most` of them looked at, and those that an earlier image of `self`
 * left. Returns how many were freed. */
uint32_t account_reclaim(const struct account *account, const struct identity *self, uint32_t most);

#endif
