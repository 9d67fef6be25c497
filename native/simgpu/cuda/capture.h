/* Stream capture: what a stream is asked while it records becomes nodes of a graph. */
#ifndef SIMGPU_CAPTURE_H
#define SIMGPU_CAPTURE_H

#include "driver.h"

typedef struct capture capture;

CUresult capture_kernel(CUstream stream, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult capture_host(CUstream stream, CUhostFn function, void *data);
CUresult capture_event(CUstream stream, CUevent event);
CUresult capture_allocate(CUstream stream, size_t size, CUdeviceptr *out);
CUresult capture_free(CUstream stream, CUdeviceptr at);
CUresult capture_child(CUstream stream, CUgraph graph);
CUresult capture_node(CUstream stream, int type); /* one that takes no time */
/* The stream records into the same graph from now on. */
CUresult capture_join(CUstream stream, capture *c);
/* For calls that a capture does not allow: spoils it, and says so. */
CUresult capture_forbid(capture *c);

#endif
