/* The contexts of this process, and which device each one is on. */
#ifndef LAMINA_CONTEXT_TABLE_H
#define LAMINA_CONTEXT_TABLE_H

#include "cuda_min.h"

#include <stdbool.h>
#include <stdint.h>

struct context {
    CUcontext handle;
    int device;
    bool primary;
    uint64_t bytes; /* charged for it */
    bool guessed;   /* `bytes` is not the driver's figure */
};

/* The device of the calling thread's current context, or -1 without one. Fast for a context seen before. */
int context_device(CUcontext *context);

/* Adds a context. False when there is no memory for the entry. */
bool context_table_add(const struct context *context);

/* Finds a context by its handle or, with a NULL handle, the primary context of a device. */
bool context_table_find(CUcontext handle, int device, struct context *found);

/* Finds one whose charge is a guess. */
bool context_table_find_guessed(struct context *found);

/* Changes the charge of a context, which is no guess from then on. */
void context_table_correct(CUcontext handle, uint64_t bytes);

/* Finds a context as above, and removes it. */
bool context_table_remove(CUcontext handle, int device, struct context *removed);

/* Registers what context_device calls for a current context that is not in the table. It returns the device. */
void on_unknown_context(int (*adopt)(CUcontext context, int device));

/* Registers a function to call before the driver may destroy a context. Registering it again changes nothing. */
void on_context_end(void (*end)(CUcontext context));

/* Calls those functions. */
void context_table_ending(CUcontext context);

/* Drops all entries, in a forked child. */
void context_table_after_fork(void);

#endif
