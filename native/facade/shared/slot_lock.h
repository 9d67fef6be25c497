/* A lock on the first byte of each slot in the usage file. A slot's owner holds it for as long as it lives. The kernel
 * drops it when the process ends or executes another program, so it shows who is alive even where pids cannot: between
 * pid namespaces.
 *
 * It is a lock of an open file description, and no one ever waits for it. A mapping keeps the description open, so the
 * lock outlives the descriptor: programs that close unknown descriptors do not drop it, and children do not inherit it.
 * Kernels before 3.15 have no such locks; there only pids count.
 *
 * Example: processes A and B of one container are in two pid namespaces.
 *
 *   1. A opens the usage file (slot_lock_open) and maps it (slot_lock_keep), locks slot 5 and closes the file.
 *   2. B finds an owner in slot 5 that its own /proc does not show. B opens the file and tries the lock: SLOT_TAKEN, so
 *      A is alive.
 *   3. A is killed. The kernel removes A's mapping, the last reference to its open file description, and the lock.
 *   4. B tries again: SLOT_LOCKED, so A is dead. While B holds the lock, no other process clears or takes the slot. B
 *      clears it and unlocks it. */
#ifndef LAMINA_SLOT_LOCK_H
#define LAMINA_SLOT_LOCK_H

#include "lamina_layout.h"

#include <stdbool.h>

enum slot_lock { SLOT_LOCKED, SLOT_TAKEN, SLOT_NO_LOCKS, SLOT_LOCK_FAILED };

/* A new open file description of the usage file, or -1 (also for a NULL path). It holds its locks until it is closed
 * and the mapping that slot_lock_keep made of it is gone. */
int slot_lock_open(const char *path);
void slot_lock_close(int file);

/* Keeps the locks of `file` until this process ends or executes another program. NULL when that is not possible. */
void *slot_lock_keep(int file);
void slot_lock_release(void *kept);

/* Tries to lock the slot that begins at `offset`. */
enum slot_lock slot_lock(int file, uint64_t offset);
void slot_unlock(int file, uint64_t offset);

#endif
