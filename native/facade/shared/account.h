/* The account of a container's memory. All processes of the container keep it together in the usage file.
 *
 * A process first adds a request to its own slot, then checks the limit, and only then asks the driver. Two processes
 * that race see each other's request, so the limit is never exceeded; at worst both are refused. `total` saves summing
 * up the slots: it is never less than what is held, so a request that fits by `total` is within the limit. A process
 * that is killed between two steps leaves `total` too high; then the sum over the slots decides.
 *
 * Example: the limit is 100 MiB, and two processes hold 30 MiB each, so `total` is 60. Both ask for 30 MiB at once.
 * Both add 30 to their slots and to `total`, which becomes 90 for the first and 120 for the second. The first one is
 * within the limit. The second one sums up the slots, finds 120, takes its 30 back and is refused. */
#ifndef LAMINA_ACCOUNT_H
#define LAMINA_ACCOUNT_H

#include "lamina_layout.h"
#include "shared/owner.h"
#include "shared/usage_slots.h"

#include <stdbool.h>

/* Bytes that all processes hold on a device. */
uint64_t account_held(const struct account *account, uint32_t device);

/* The part of it that stays on the GPU: all but managed memory, requested as such or substituted for device memory. */
uint64_t account_pinned(const struct account *account, uint32_t device);

/* Notes that bytes which the slot holds are managed memory in place of device memory, or no longer are, of which so
 * many were kept on the host. */
void account_spill(struct lamina_slot *slot, uint32_t device, uint64_t bytes);
void account_unspill(struct lamina_slot *slot, uint32_t device, uint64_t bytes, uint64_t hosted);

/* What all processes keep of it on the host. */
uint64_t account_hosted(const struct account *account, uint32_t device);

/* Raises the peak to what the container holds now, if that is within its limit. */
void account_note_peak(const struct account *account, uint32_t device);

/* Adds to the slot and returns 0 if the container stays within its limit. Otherwise changes nothing and returns what
 * the container would have held. */
uint64_t account_charge(const struct account *account, struct lamina_slot *slot, uint32_t device, enum lamina_kind kind,
                        uint64_t bytes);

/* Adds what the driver holds already, without checking the limit. */
void account_add(const struct account *account, struct lamina_slot *slot, uint32_t device, enum lamina_kind kind,
                 uint64_t bytes);

/* Subtracts a charge, never going below zero. */
void account_discharge(const struct account *account, struct lamina_slot *slot, uint32_t device, enum lamina_kind kind,
                       uint64_t bytes);

/* Takes a free slot, and its lock through `file` (see slot_lock_open). NULL when no slot is free. */
struct lamina_slot *account_join(const struct account *account, const struct identity *self, int file);

/* Frees slots of dead processes, checking at most `limit` slots, and all slots that an earlier program image of `self`
 * left. Returns how many were freed. */
uint32_t account_reclaim(const struct account *account, const struct identity *self, uint32_t limit);

#endif
