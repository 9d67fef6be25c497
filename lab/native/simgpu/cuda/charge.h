/* What this process is charged for memory of a device. The device is charged in blocks of 2 MiB, like the real one. */
#ifndef SIMGPU_CHARGE_H
#define SIMGPU_CHARGE_H

#include "cuda/device.h"

#include <stdbool.h>

/* False when the device, a cgroup's limit or that of a client of MPS leaves no space. Before that, everything that a
 * driver can free is freed. */
bool charge_take(struct device *dev, uint32_t mib);
/* The same without trying to free memory first. */
bool charge_take_once(struct device *dev, uint32_t mib);
void charge_give(struct device *dev, uint32_t mib);

/* Bytes that the process could still get, and the total; those of its cgroup where that has a limit. */
void charge_available(const struct device *dev, uint64_t *available, uint64_t *total);

#endif
