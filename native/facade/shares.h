/* Allocations that processes of a container share, by what lamina_layout.h calls shares.
 *
 * Whoever lets others use an allocation says so, and so does whoever uses one. The bytes count in the owner's slot; when
 * the owner is gone, by freeing or by death, what it said is void and those who still use the allocation count
 * instead, once for all of them. An allocation from outside of the container never had an owner in it, so it counts by
 * its first use. Nothing has to be done when a process dies, hence nothing can be forgotten. */
#ifndef LAMINA_SHARES_H
#define LAMINA_SHARES_H

#include "account.h"

/* In keys of memory that travels as a file, which file_marks.h recognises; not in others. */
#define SHARES_BY_FILE (UINT64_C(1) << 63)

/* Bytes on a device that count by their uses. To be read after the slots: an owner's word falls before its bytes do. */
uint64_t shares_orphaned(const struct account *account, uint32_t device);

/* Says that the slot's process lets others use an allocation. NULL when the table is full; then uses count beside it. */
struct lamina_share *shares_own(const struct account *account, struct lamina_slot *slot, uint64_t key, uint32_t device,
                                uint64_t bytes);

/* Says that it uses one, and returns whether its owner's word stands. False with *share NULL when the use would take
 * the container over its limit, or the table is full. */
bool shares_use(const struct account *account, struct lamina_slot *slot, uint64_t key, uint32_t device, uint64_t bytes,
                struct lamina_share **share);

/* Takes back either. */
void shares_drop(const struct account *account, struct lamina_slot *slot, struct lamina_share *share);

/* A share by its number, and its number. */
struct lamina_share *shares_at(const struct account *account, uint32_t index);
uint32_t shares_index(const struct account *account, const struct lamina_share *share);

/* What the owner of an allocation says of it. False when none does, or several by the same key. */
bool shares_owned(const struct account *account, uint64_t key, uint32_t *device, uint64_t *bytes);

/* The key of some share that stands and of which `is` says so; 0: there is none. */
uint64_t shares_find(const struct account *account, bool (*is)(uint64_t key, int with), int with, uint32_t *device,
                     uint64_t *bytes);

#endif
