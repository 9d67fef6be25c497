/* This process as the container's account knows it. A forked child is another process and gets its own slot. */
#ifndef LAMINA_SELF_H
#define LAMINA_SELF_H

#include "facade.h"

#include <stdbool.h>

/* To be called before the first lock is taken: from then on a forked child starts with free locks and no slot, also if
 * another thread holds them at that moment. */
void self_watch_forks(void);

/* The slot of this process, taken at the first call. NULL when there is none to be had: the container has as many
 * processes as there are slots, or there is no container. */
struct lamina_slot *self_slot(void);

/* The slot if this process has one; never takes one. */
struct lamina_slot *self_slot_if_any(void);

/* Frees dead processes' slots. The sparing form looks at most every 100 ms, by a clock that costs no system call. */
void self_reclaim(void);
void self_reclaim_sparingly(void);

#endif
