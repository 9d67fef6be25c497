/* Streams: which one a handle stands for, and waiting for them. */
#ifndef SIMGPU_STREAM_H
#define SIMGPU_STREAM_H

#include "cuda/context.h"

/* The stream object of a handle: the context's default stream for the special ones. */
CUresult stream_resolve(CUstream handle, CUstream *stream);
/* The position up to which work has to be done before what the stream gets next. The default stream waits for all
 * others and they for it, but for those that are not blocking. With the lock held. */
uint64_t stream_end(CUstream stream);
bool stream_is_default(CUstream handle);
void stream_wait(CUstream stream);
/* Waits for all work of the process on the context's device. */
void stream_wait_all(CUcontext ctx);
void stream_destroy_all(CUcontext ctx); /* with the lock held */

#endif
