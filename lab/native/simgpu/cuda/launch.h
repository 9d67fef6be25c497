/* Kernel launches. */
#ifndef SIMGPU_LAUNCH_H
#define SIMGPU_LAUNCH_H

#include "cuda/exports.h"

#include <stdint.h>

/* Adds a kernel of this duration to the stream. The host continues at once, unless so many launches are waiting that
 * the real driver would block too. */
void launch_append(CUstream stream, uint64_t ns);

#endif
