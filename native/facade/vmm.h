/* Physical memory that is mapped by hand. */
#ifndef LAMINA_VMM_H
#define LAMINA_VMM_H

/* Forgets all of it, in a forked child. */
void vmm_forget(void);

#endif
