/* The facade's own entry points, for cuGetProcAddress. Their names are in table_names. */
#ifndef LAMINA_ENTRIES_H
#define LAMINA_ENTRIES_H

#include <stdbool.h>

struct entry {
    const void *address; /* of the facade's function */
    int since;           /* CUDA version; 0 where a function has only one form */
    bool replaced;       /* the facade does more than pass the call on */
};

extern const struct entry entries[];
extern const unsigned entries_count;

#endif
