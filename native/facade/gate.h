/* The gate that every launch passes. While a thread's batch on a stream has launches left, passing costs a few
 * instructions and touches nothing that others write; once per batch the thread looks at the clock, at what the GPU
 * has done and at the container's share, and waits if it has to. */
#ifndef LAMINA_GATE_H
#define LAMINA_GATE_H

#include "cuda_min.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct batch;

enum { LANES = 8 };

/* A thread's work on one stream. */
struct lane {
    CUstream stream;
    uint32_t left;          /* launches of the batch still to come */
    uint32_t epoch;
    const uint64_t *asking; /* not 0: a launch must ask although some are left */
    struct batch *batch;    /* NULL: nothing is measured */
    uint64_t opened;
    uint32_t size;
    uint32_t grown;         /* up to which a batch may be larger next time */
    int device;
};

extern __thread struct lane gate_lanes[LANES] __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Grows when a stream or context ends: its handle may come again for another one. */
extern atomic_uint gate_epoch __attribute__((visibility("hidden")));

static inline struct lane *gate_lane(CUstream stream)
{
    uintptr_t handle = (uintptr_t)stream;
    return &gate_lanes[(handle ^ handle >> 6 ^ handle >> 12) % LANES];
}

/* True when a launch may go to the driver as it is; else it stands between gate_enter and gate_leave. */
static inline bool gate_passes(CUstream stream)
{
    struct lane *lane = gate_lane(stream);
    if (lane->stream != stream || lane->left <= 1 ||
        lane->epoch != atomic_load_explicit(&gate_epoch, memory_order_relaxed) ||
        __atomic_load_n(lane->asking, __ATOMIC_RELAXED) != 0)
        return false;
    lane->left--;
    return true;
}

void gate_enter(CUstream stream);
void gate_leave(CUstream stream);

/* This thread makes no launch for a while: what it has launched so far is a batch. */
void gate_pause(void);

/* The same, and the launches after it go to another context. */
void gate_turns(void);

/* After a call by which the thread may have waited for the GPU: reads what is done. */
void gate_waited(void);

/* A stream or context is about to end. */
void gate_stream_ends(CUstream stream);
void gate_context_ends(CUcontext context);

/* In a forked child. */
void gate_forget(void);

#endif
