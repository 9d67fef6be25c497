/* The environment as the driver reads it. The program's own is never changed, as other threads and children use it: the
 * driver asks the facade instead of the C library, and gets other answers for two variables.
 *
 * CUDA_VISIBLE_DEVICES                 the granted GPUs that the program's own value selects, by their UUIDs
 * CUDA_MPS_ACTIVE_THREAD_PERCENTAGE    at most what was granted, in a client of MPS */
#ifndef LAMINA_DRIVER_ENVIRONMENT_H
#define LAMINA_DRIVER_ENVIRONMENT_H

#include "shared/facade.h"

#include <stdbool.h>

/* Call this before the driver is used. Where the driver does not read its environment by getenv, it sees the program's
 * own variables. */
void driver_environment_give(const struct facade *facade);

/* Whether a limit holds that depends on what the driver reads. The GPUs that it shows must be checked in any case. */
bool driver_environment_is_limited(const struct lamina_limits *limits);

#endif
