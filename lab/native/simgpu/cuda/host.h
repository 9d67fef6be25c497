/* Host memory that the program allocated by the driver or registered with it. Host addresses and device addresses of it
 * are the same. */
#ifndef SIMGPU_HOST_H
#define SIMGPU_HOST_H

#include <stdbool.h>
#include <stddef.h>

bool host_is_known(const void *at);
/* How many bytes of such memory there are from here on; 0 when it is none. */
size_t host_length(const void *at);
void host_after_fork(void);

#endif
