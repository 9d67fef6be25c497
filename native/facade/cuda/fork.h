/* What a forked child does before it works with the GPU: it drops the state that belongs to its parent.
 *
 * Each unit that keeps per-process state registers a function that resets it. That keeps process.c, which watches for
 * forks, independent of the units above it. */
#ifndef LAMINA_FORK_H
#define LAMINA_FORK_H

/* Registers a function that resets a unit's state in a forked child. Registering it again changes nothing. */
void on_fork(void (*reset)(void));

/* Calls all registered functions, in the order of registration. */
void fork_reset_all(void);

#endif
