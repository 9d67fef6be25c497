/* What the driver itself says that this process, or all processes, use on a device. Read by NVML. */
#ifndef LAMINA_DRIVER_USAGE_H
#define LAMINA_DRIVER_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes on the device. False when the driver does not say. */
bool driver_usage_of_process(int device, uint64_t *bytes);
bool driver_usage_of_device(int device, uint64_t *bytes);

/* Drops the NVML handles, in a forked child. */
void driver_usage_after_fork(void);

#endif
