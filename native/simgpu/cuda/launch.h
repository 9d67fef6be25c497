#ifndef SIMGPU_LAUNCH_H
#define SIMGPU_LAUNCH_H

#include "driver.h"

/* Gives the stream this much work. */
void launch_time(CUstream stream, uint64_t ns);

#endif
