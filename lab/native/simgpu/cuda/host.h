/* Host memory that the program allocated by the driver or registered with it. Host addresses and device addresses of it
 * are the same. */
#ifndef SIMGPU_HOST_H
#define SIMGPU_HOST_H

#include <stdbool.h>

bool host_is_known(const void *at);
void host_after_fork(void);

#endif
