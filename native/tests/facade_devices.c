/* devices.c alone, for a test that calls it: there is no driver and no container. */
#include "shared/facade.h"

_Atomic(void *) lamina_table[1024];

const struct facade *facade_open(void)
{
    return NULL;
}
