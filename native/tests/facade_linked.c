/* The driver's functions as the linker finds them: built into programs, and into a plug-in that is loaded with
 * RTLD_DEEPBIND. */
#include "facade_calls.h"

#include <string.h>

void *linked_find(const char *wanted);
void *linked_find(const char *wanted)
{
#define FIND(name, version)                                                                                            \
    if (strcmp(wanted, #name) == 0)                                                                                    \
        return (void *)name;
    CALLS(FIND)
    return NULL;
}
