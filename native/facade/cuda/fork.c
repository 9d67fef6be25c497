#include "cuda/fork.h"

#include "shared/callbacks.h"

static struct callbacks resets;

void on_fork(void (*reset)(void))
{
    callbacks_add(&resets, reset);
}

void fork_reset_all(void)
{
    callbacks_call(&resets);
}
