/* A lock on each slot's first byte of the usage file, which the owner holds for its life. The kernel drops it when the
 * process ends or becomes another program, so it tells who lives also where pids cannot: between pid namespaces.
 *
 * It is a lock of an open file description, which nobody ever waits for. A mapping keeps the description open, so the
 * lock outlives the descriptor: programs that close what they do not know do not drop it, and children do not have it.
 * Kernels before 3.15 have no such locks; there only pids are judged by. */
#ifndef LAMINA_SLOT_LOCK_H
#define LAMINA_SLOT_LOCK_H

#include "lamina_layout.h"

#include <stdbool.h>

enum slot_lock { SLOT_LOCKED, SLOT_TAKEN, SLOT_NO_LOCKS, SLOT_LOCK_FAILED };

/* A new open file description of the usage file, or -1 (also for no path). Each holds its locks until it is closed and
 * what slot_lock_keep mapped of it is gone. */
int slot_lock_open(const char *path);
void slot_lock_close(int file);

/* Keeps the locks of `file` until this process ends or becomes another program. NULL when that cannot be. */
void *slot_lock_keep(int file);
void slot_lock_let_go(void *kept);

/* Tries to lock the slot that begins at `offset`. */
enum slot_lock slot_lock(int file, uint64_t offset);
void slot_unlock(int file, uint64_t offset);

#endif
