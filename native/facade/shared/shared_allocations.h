/* Allocations that processes of a container share with each other: the table of struct lamina_share in the usage file.
 *
 * A process that lets others use an allocation adds an export entry, and each process that uses it adds a use entry.
 * The bytes count in the owner's slot. When the owner is gone, because it freed the allocation or died, its entry is
 * void; then the use entries count instead, once for all of them. An allocation from outside the container never had an
 * export entry here, so it counts by its first use. Entries become void with the slot of their process, so a process
 * that dies leaves nothing to clean up.
 *
 * Example: A allocates 10 MiB and exports them; B and C open them. The container holds 10 MiB, in A's slot. A is
 * killed: its slot is freed, the 10 MiB stay on the GPU, and B's entry counts them. B closes: C's entry counts them. C
 * closes: the container holds nothing. */
#ifndef LAMINA_SHARED_ALLOCATIONS_H
#define LAMINA_SHARED_ALLOCATIONS_H

#include "shared/usage_slots.h"

/* Set in the keys of memory that travels as a file, which file_marks.h recognizes; clear in others. */
#define SHARED_BY_FILE (UINT64_C(1) << 63)

/* Bytes on a device that count by their use entries. Read this after the slots: an owner's entry is removed before its
 * bytes are, so that in between the bytes count twice rather than not at all. */
uint64_t shared_orphaned_bytes(const struct account *account, uint32_t device);

/* Adds an export entry. NULL when the table is full; then uses count in addition to the owner's bytes. */
struct lamina_share *shared_export(const struct account *account, struct lamina_slot *slot, uint64_t key,
                                   uint32_t device, uint64_t bytes);

/* Adds a use entry, and returns whether there is a valid export entry for it. Returns false with *share NULL when the
 * use would exceed the container's limit, or the table is full. */
bool shared_use(const struct account *account, struct lamina_slot *slot, uint64_t key, uint32_t device, uint64_t bytes,
                struct lamina_share **share);

/* Removes an entry of either kind that this process added; any other is left as it is. */
void shared_drop(const struct account *account, struct lamina_slot *slot, struct lamina_share *share);

/* An entry by its number, and its number. */
struct lamina_share *shared_at(const struct account *account, uint32_t index);
uint32_t shared_index(const struct account *account, const struct lamina_share *share);

/* Device and size from the export entry of an allocation. False when there is none, or more than one with this key. The
 * device exists; the size may be anything. */
bool shared_find_export(const struct account *account, uint64_t key, uint32_t *device, uint64_t *bytes);

/* The key of a valid entry for which `matches(key, argument)` is true; 0 when there is none. The device exists; the
 * size may be anything. */
uint64_t shared_find(const struct account *account, bool (*matches)(uint64_t key, int argument), int argument,
                     uint32_t *device, uint64_t *bytes);

#endif
