/* What a forked child forgets: all state of its parent's driver. */
#ifndef SIMGPU_FORK_H
#define SIMGPU_FORK_H

/* Call this before taking the first lock. From then on a forked child starts without the parent's state and with free
 * locks, even if another thread holds the locks at that moment. */
void fork_watch(void);

#endif
