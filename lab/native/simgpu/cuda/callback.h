/* Host functions in streams. One thread per process runs them, in the order of their submission. */
#ifndef SIMGPU_CALLBACK_H
#define SIMGPU_CALLBACK_H

#include "cuda/context.h"

/* Calls `plain`, or `full` with the stream and status, once the stream's work up to now is done. */
CUresult callback_enqueue(CUstream stream, CUhostFn plain, CUstreamCallback full, void *data);
void callback_wait(CUstream stream);
void callback_wait_all(void);
/* The number of the stream's newest host function that has not run yet; 0: all have. And whether one has run. */
uint64_t callback_newest(CUstream stream);
bool callback_has_run(uint64_t number);
void callback_wait_for(uint64_t number);
void callback_after_fork(void);

#endif
