/* Stream capture: what is submitted to a stream while it captures becomes nodes of a graph. */
#ifndef SIMGPU_CAPTURE_H
#define SIMGPU_CAPTURE_H

#include "cuda/stream.h"

#include <stddef.h>

struct capture;

CUresult capture_add_kernel(CUstream stream, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult capture_add_host(CUstream stream, CUhostFn function, void *data);
CUresult capture_add_event(CUstream stream, CUevent event);
CUresult capture_add_allocation(CUstream stream, size_t size, CUdeviceptr *out);
CUresult capture_add_free(CUstream stream, CUdeviceptr at);
CUresult capture_add_child(CUstream stream, CUgraph graph);
CUresult capture_add_node(CUstream stream, CUgraphNodeType type); /* one that takes no time */
/* From now on the stream captures into the same graph. */
CUresult capture_join(CUstream stream, struct capture *c);
/* For calls that a capture does not allow: invalidates it and returns the error. */
CUresult capture_invalidate(struct capture *c);
/* For calls that are potentially unsafe in a capture, as cuThreadExchangeStreamCaptureMode has it: an error where a
 * capture of this thread, or a global one of another, forbids them; it is invalidated. */
CUresult capture_check_safe(void);
/* The stream ends. */
void capture_forget(CUstream stream); /* with the lock held */
void capture_after_fork(void);
/* An error when a stream of the context is capturing, which forbids waiting for the context and ends the capture. */
CUresult capture_check_absent(CUcontext ctx);

#endif
