/* The gate that every launch passes. While a thread's batch on a stream has launches left, passing costs a few
 * instructions and writes nothing that others read. Once per batch the thread reads the clock, what the GPU has done
 * and the container's share, and waits if it has to.
 *
 * Example: a container with 50 % of a GPU, and a thread that launches kernels of 10 us in a loop.
 *
 *   launch 1    The lane is empty, so gate_enter starts a batch. Nothing is known about the kernels: the batch is one
 *               launch. It is charged when it is measured.
 *   launch 2    gate_enter collects: a launch took 10 us. About 1 ms, 100 launches, would make a batch, but a batch
 *               grows at most fourfold, so this one has 4 (or a few less: sizes vary). 40 us are charged.
 *   3 and 4     gate_passes: `left` is 3, then 2. No clock, no lock, no shared memory.
 *   launch 5    It is the last of the batch, so it goes through gate_enter and gate_leave, which closes the batch.
 *   launch 6    The next batch has 16 launches, then 64, then 100. Each one moves `due` by twice its time. When `due`
 *               is in the future, gate_enter sleeps until then, so the GPU works half of the time for this thread. */
#ifndef LAMINA_LAUNCH_GATE_H
#define LAMINA_LAUNCH_GATE_H

#include "cuda_min.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct batch;

enum { LANES = 8 };

/* A thread's work on one stream. */
struct lane {
    CUstream stream;
    uint32_t left; /* launches of the batch still to come */
    uint32_t epoch;
    const _Atomic uint64_t *asking; /* not 0: a launch must enter the gate although some are left */
    struct batch *batch;            /* NULL: nothing is measured */
    uint64_t opened;
    uint32_t size;
    uint32_t size_limit; /* how large the batch may be; the next one may be four times as large */
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

/* True when a launch may go directly to the driver. Otherwise call gate_enter before it and gate_leave after it. */
static inline bool gate_passes(CUstream stream)
{
    struct lane *lane = gate_lane(stream);
    if (lane->stream != stream || lane->left <= 1)
        return false;
    /* Relaxed: a program orders its own launches after the call that ended a stream or context, and no other data is
     * read because of these two values. */
    if (lane->epoch != atomic_load_explicit(&gate_epoch, memory_order_relaxed) ||
        atomic_load_explicit(lane->asking, memory_order_relaxed) != 0)
        return false;
    lane->left--;
    return true;
}

void gate_enter(CUstream stream);

/* Registers what gate_enter calls first, for a thread that has a context on the device. */
void on_gate_enter(void (*entering)(int device));

void gate_leave(CUstream stream);

/* This thread makes no launch for a while: what it has launched so far is a batch. */
void gate_close_batches(void);

/* The same, and its next launches go to another context. */
void gate_switch_context(void);

/* After a call in which the thread may have waited for the GPU: collects what is done. */
void gate_collect(void);

/* A stream or context is about to end. */
void gate_end_stream(CUstream stream);
void gate_end_context(CUcontext context);

/* In a forked child. */
void gate_after_fork(void);

#endif
