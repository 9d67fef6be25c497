/* Measuring how long the GPU works: launches of one thread on one stream are taken together as a batch, between two
 * events. What the events say is read when the driver has it, by whoever comes next; nobody waits for it.
 *
 * Where events cannot be had, a batch lasts until the stream is seen idle, by the clock; where the driver does not
 * even tell that, until now. So a failure never makes work cheaper. */
#ifndef LAMINA_METERS_H
#define LAMINA_METERS_H

#include "cuda_min.h"

#include <stdbool.h>
#include <stdint.h>

struct batch;

/* Work that takes longer may wait for the very launch that would wait for it. */
#define PATIENCE_NS UINT64_C(100000000)

/* What is known about a context's work so far. */
struct meter_state {
    uint64_t each;      /* ns that a launch takes; 0 with !known */
    unsigned unfinished; /* batches that are closed and that the GPU has not done, but for those that are late */
    unsigned open;
    bool known;
    bool late;           /* some are not done PATIENCE_NS after their last launch */
};

/* Reads what is done and says what is known. All these are called with the context current. */
struct meter_state meter_read(CUcontext context, int device, uint64_t now);

/* Begins a batch for which `announced` ns were charged already. NULL without memory. */
struct batch *meter_open(CUcontext context, int device, CUstream stream, uint64_t now, uint64_t announced);

/* The thread has made its last launch of the batch, and gives it up. */
void meter_close(struct batch *batch, uint32_t launches);

/* Nobody may touch the stream, or the context (with all its streams), from now on. */
void meter_stream_ends(CUstream stream);
void meter_context_ends(CUcontext context);

/* Whether a stream takes down a graph, or nobody may ask: then it is left alone. */
bool meter_is_capturing(CUstream stream);

void meters_forget(void);

#endif
