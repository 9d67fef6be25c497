/* Host functions in streams. */
#ifndef SIMGPU_CALLBACK_H
#define SIMGPU_CALLBACK_H

#include "driver.h"

/* Calls `plain`, or `full` with the stream and status, once the stream's work up to now is done. */
CUresult callback_add(CUstream stream, CUhostFn plain, CUstreamCallback full, void *data);
void callback_wait(CUstream stream);
void callback_wait_all(void);

#endif
