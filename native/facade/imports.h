/* Memory shared with other processes. */
#ifndef LAMINA_IMPORTS_H
#define LAMINA_IMPORTS_H

/* Forgets the parent's lock, in a forked child. */
void imports_forget(void);

/* Says that this process uses a shared allocation; before a refusal, what is held only on paper is given back. NULL when
 * it is refused. */
struct lamina_share *imports_use(struct lamina_slot *slot, uint64_t key, int device, uint64_t bytes);

#endif
