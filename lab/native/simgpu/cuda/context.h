/* Contexts. Each one takes the GPU's context memory, and all that was allocated in it ends with it. */
#ifndef SIMGPU_CONTEXT_H
#define SIMGPU_CONTEXT_H

#include "cuda/device.h"
#include "cuda/stream.h"

#include <stdbool.h>
#include <stddef.h>

struct CUctx_st {
    uint32_t magic; /* 0: destroyed */
    int ordinal;
    struct device *dev;
    unsigned int flags;
    unsigned long long id;
    size_t limits[16], initial_limits[16];
    uint32_t limits_mib;       /* what the limits take beyond a context's default limits */
    struct CUstream_st legacy; /* the default stream */
    CUstream streams;
    struct allocation *allocations;
    CUcontext next;
};

/* Creates and destroys a context; call both with the lock held. The structure of a context stays, so that a late use
 * is an error and not a crash. */
CUresult context_create(CUcontext *out, int ordinal, unsigned int flags);
/* The same in the structure of a destroyed context, or in a new one for NULL: the primary context of a device has the
 * same handle in all its lives. */
CUresult context_create_in(CUcontext place, CUcontext *out, int ordinal, unsigned int flags);
void context_destroy(CUcontext ctx);
bool context_exists(CUcontext ctx);

void context_limits_begin(CUcontext ctx);

/* The calling thread's context, for a call that needs one. */
CUresult context_require(CUcontext *ctx);
/* The same, or NULL. */
CUcontext context_current(void);
CUresult context_push(CUcontext ctx);
/* Removes the context from the top of the calling thread's stack, if it is there. */
void context_pop(CUcontext ctx);
void context_after_fork(void);

/* Waits for all work of the process on the context's device. */
void context_wait(CUcontext ctx);

#endif
