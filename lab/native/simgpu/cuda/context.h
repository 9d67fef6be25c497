/* Contexts and their streams. A context takes the GPU's context memory, and all that was allocated in it ends with it.
 * All streams of a process share its one queue on a GPU, so a stream is a position in that queue. */
#ifndef SIMGPU_CONTEXT_H
#define SIMGPU_CONTEXT_H

#include "cuda/driver.h"

#include <stdbool.h>
#include <stddef.h>

#define CONTEXT_MAGIC 0x53494d43

enum { STREAM_PRIORITY_LEAST = 0, STREAM_PRIORITY_GREATEST = -5 };

struct CUstream_st {
    CUcontext ctx; /* NULL: the stream was destroyed */
    unsigned int flags;
    int priority;
    unsigned long long id;
    _Atomic uint64_t last; /* position of the end of its newest work */
    uint32_t callbacks;    /* host functions not yet run */
    struct capture *capture;
    CUstream next;
};

struct CUctx_st {
    uint32_t magic; /* 0: destroyed */
    int ordinal;
    struct device *dev;
    unsigned int flags;
    unsigned long long id;
    _Atomic uint64_t fault; /* position of work that breaks it; 0: none */
    size_t limits[16], initial_limits[16];
    uint32_t limits_mib;       /* what the limits take beyond a context's default limits */
    struct CUstream_st legacy; /* the default stream */
    CUstream streams;
    struct allocation *allocations;
    CUcontext next;
};

bool context_exists(CUcontext ctx);

/* The calling thread's context, for a call that needs one. */
CUresult context_require(CUcontext *ctx);
/* An error where work has broken the context. */
CUresult context_check_sound(CUcontext ctx);
/* The same, or NULL. */
CUcontext context_current(void);
CUresult context_push(CUcontext ctx);
/* Removes the context from the top of the calling thread's stack, if it is there. */
void context_pop(CUcontext ctx);
void context_after_fork(void);

#endif
