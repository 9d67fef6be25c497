/* Measuring how long the GPU works. Launches of one thread on one stream form a batch, between two events. What the
 * events say is read when the driver has it, by the next thread that comes along; no thread waits for it.
 *
 * Where events are not available, a batch lasts until the stream is seen idle, by the clock; where the driver does not
 * even say that, until now. So a failure never makes work cheaper.
 *
 * Example: a container with 50 % of a GPU, whose launches took 10 us each so far.
 *
 *   1. The gate charges 1 ms for a batch of 100 launches, so `due` moves by 2 ms. Then meter_open records the start
 *      event.
 *   2. The thread launches 100 times. meter_close records the end event after the last launch, 0.3 ms later.
 *   3. The next thread that passes the gate calls meter_read. The end event is done: 1.2 ms lie between the events, and
 *      the GPU was done 0.9 ms after the last launch, so it always had work. The work is the whole span, 1.2 ms.
 *   4. No other process of the container worked in these milliseconds, so all 1.2 ms are charged. 1 ms was charged in
 *      step 1; the correction of 0.2 ms moves `due` by another 0.4 ms.
 *   5. A launch is now taken to last 10 - 10/4 + 12/4 = 10.5 us.
 *
 * If another process of the container had worked at the same time, the bins of bucket.h would charge the overlap once.
 * estimate.h says how much of a span counts as work when the GPU waited for launches or worked for other containers. */
#ifndef LAMINA_METERS_H
#define LAMINA_METERS_H

#include "cuda_min.h"

#include <stdbool.h>
#include <stdint.h>

struct batch;

/* Work that takes longer than this may be waiting for the very launch that would wait for it. */
#define PATIENCE_NS UINT64_C(100000000)

/* What is known about a context's work so far. */
struct meter_state {
    uint64_t each;       /* ns that a launch takes; 0 if not known */
    unsigned unfinished; /* batches that are closed and that the GPU has not done, without those that are late */
    unsigned open;
    uint64_t pending; /* what is charged for batches that are not settled */
    uint64_t ends;    /* when those are probably done that the GPU has not done */
    bool known;
    bool late; /* some are not done PATIENCE_NS after their last launch */
};

/* Collects what is done and returns what is known. The context must be current in all calls of this unit. */
struct meter_state meter_read(CUcontext context, int device, uint64_t now);

/* Opens a batch for which `charged` ns are charged already. NULL without memory. */
struct batch *meter_open(CUcontext context, int device, CUstream stream, uint64_t now, uint64_t charged);

/* The thread has made its last launch of the batch, and no longer uses it. */
void meter_close(struct batch *batch, uint32_t launches);

/* The stream, or the context with all its streams, may not be used from now on. */
void meter_end_stream(CUstream stream);
void meter_end_context(CUcontext context);

/* Whether a stream is being captured into a graph, or may not be queried: then its launches are not measured. */
bool meter_is_capturing(CUstream stream);

void meters_after_fork(void);

#endif
