/* Host memory that the program got from the driver, or made known to it. */
#ifndef SIMGPU_HOST_H
#define SIMGPU_HOST_H

#include "driver.h"

bool host_known(const void *at);

#endif
