/* The table of a library's entry points: their numbers, and the driver's own function behind each.
 *
 * The build names the library's generated list of entry points in TABLE. It has one line for each, with its number. */
#ifndef LAMINA_TABLE_H
#define LAMINA_TABLE_H

#include <stdatomic.h>

#define HOOK(i, name, since) ENTRY_##name = i,
#define PASS(i, name, since) ENTRY_##name = i,
#define FORBID(i, name, since) ENTRY_##name = i,
enum {
#include TABLE
    ENTRIES
};
#undef HOOK
#undef PASS
#undef FORBID

/* The real library's functions by their numbers; see trampoline.S. */
extern _Atomic(void *) lamina_table[];

/* The names of the entry points. Arrays instead of pointers, so that the loader has no relocations to apply. */
extern const char table_names[][64];

/* The driver's own function. It may be called in any state: without a driver it answers as the facade's entry points.
 * Acquire: the driver's library was loaded and relocated before its function was stored in the table. */
#define REAL(name) ((__typeof__(name) *)atomic_load_explicit(&lamina_table[ENTRY_##name], memory_order_acquire))

/* Makes all entries as they were before their first use. */
void table_forget(void);

/* The address of the real function behind an entry; NULL when the real library lacks it. */
void *table_find_real(unsigned entry);

#endif
