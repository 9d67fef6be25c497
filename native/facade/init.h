/* Initialisation of the driver. */
#ifndef LAMINA_INIT_H
#define LAMINA_INIT_H

/* Forgets that another thread was at it, in a forked child. */
void init_forget(void);

#endif
