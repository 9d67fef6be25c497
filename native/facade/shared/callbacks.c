#include "shared/callbacks.h"

#include "shared/assertion.h"

void callbacks_add(struct callbacks *callbacks, void (*function)(void))
{
    for (unsigned i = 0; i < callbacks->count; i++)
        if (callbacks->functions[i] == function)
            return;
    ASSERT(function != 0);
    ASSERT(callbacks->count < MAX_CALLBACKS);
    if (callbacks->count < MAX_CALLBACKS)
        callbacks->functions[callbacks->count++] = function;
}

void callbacks_call(const struct callbacks *callbacks)
{
    for (unsigned i = 0; i < callbacks->count; i++)
        callbacks->functions[i]();
}
