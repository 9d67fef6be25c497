/* The driver's functions as the linker finds them: built into programs, and into a plug-in that is loaded with
 * RTLD_DEEPBIND. */
#include "facade_calls.h"

#include <string.h>

#define DECLARE(name, version, parameters) extern CUresult name parameters;
CALLS(DECLARE)

void *linked_find(const char *wanted);
void *linked_find(const char *wanted)
{
#define FIND(name, version, parameters)                                                                               \
    if (strcmp(wanted, #name) == 0)                                                                                   \
        return (void *)name;
    CALLS(FIND)
    return NULL;
}
