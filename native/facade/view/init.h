/* Initialization of the driver. */
#ifndef LAMINA_INIT_H
#define LAMINA_INIT_H

/* Resets the lock, in a forked child. */
void init_after_fork(void);

#endif
