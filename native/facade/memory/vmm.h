/* Virtual memory management: physical memory that the program maps itself. */
#ifndef LAMINA_VMM_H
#define LAMINA_VMM_H

/* Resets the lock, in a forked child. */
void vmm_after_fork(void);

#endif
