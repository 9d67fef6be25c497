/* Streams. All streams of a process share its one queue on a GPU, so a stream is a position in that queue. */
#ifndef SIMGPU_STREAM_H
#define SIMGPU_STREAM_H

#include "cuda/exports.h"

#include <stdint.h>

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

/* The stream object of a handle: the context's default stream for the special ones. */
CUresult stream_resolve(CUstream handle, CUstream *stream);
void stream_wait(CUstream stream);
void stream_destroy_all(CUcontext ctx); /* with the lock held */
/* An error when a stream of the context is capturing, which forbids waiting for the context and ends the capture. */
CUresult stream_check_uncaptured(CUcontext ctx);

#endif
