/* This process in the container's account. A forked child is another process and gets its own slot. */
#ifndef LAMINA_PROCESS_H
#define LAMINA_PROCESS_H

#include "shared/facade.h"

#include <stdbool.h>

/* Call this before taking the first lock. From then on a forked child starts with free locks and without a slot, even
 * if another thread holds the locks at that moment. */
void process_watch_forks(void);

/* The slot of this process, taken at the first call. NULL when there is none: the container already has as many
 * processes as slots, or there is no container. */
struct lamina_slot *process_slot(void);

/* The slot if this process has one. Never takes one. */
struct lamina_slot *process_slot_if_any(void);

/* Whether the driver knows this process by the pid that it has itself. Meaningful once it has a slot. */
bool process_has_host_pids(void);

/* Frees the slots of dead processes. The second form checks at most every 100 ms, by a clock without system calls. */
void process_reclaim_dead(void);
void process_reclaim_dead_if_due(void);

#endif
