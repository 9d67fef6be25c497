/* The forms of a function in the table, found by its name, and entries by the address of the driver's function. */
#ifndef LAMINA_FORMS_H
#define LAMINA_FORMS_H

#include "shared/table.h"

#include <stdbool.h>

#define NO_ENTRY ENTRIES

/* The first entry that is the symbol, or a later or per-thread form of it, and the one after an entry. */
unsigned forms_first(const char *symbol);
unsigned forms_next(const char *symbol, unsigned entry);

/* Whether the facade replaces one of them. `any`: whether there is one. */
bool forms_include_replaced(const char *symbol, bool *any);

/* Whether a name is that of a form for per-thread default streams. */
bool forms_is_per_thread(unsigned entry);

/* The entry that replaces the driver's function at this address: a form of the symbol if there is one. */
unsigned forms_find_real(const char *symbol, const void *real);

#endif
