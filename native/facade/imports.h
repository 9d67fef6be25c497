/* Memory shared with other processes. */
#ifndef LAMINA_IMPORTS_H
#define LAMINA_IMPORTS_H

/* Forgets the parent's lock, in a forked child. */
void imports_forget(void);

#endif
