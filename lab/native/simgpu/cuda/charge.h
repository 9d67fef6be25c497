/* What this process is charged for memory of a device. The device is charged in blocks of 2 MiB, like the real one. */
#ifndef SIMGPU_CHARGE_H
#define SIMGPU_CHARGE_H

#include "cuda/driver.h"

#include <stddef.h>

/* What the device is charged for this many bytes. */
uint32_t charge_round_up_mib(size_t size);

/* False when the device, a cgroup's limit or that of a client of MPS leaves no space; reclaim.h makes some. */
bool charge_take(struct device *dev, uint32_t mib);
void charge_give(struct device *dev, uint32_t mib);

/* Whether the limits leave no space for this much more; then free memory on the GPU does not help. */
bool charge_is_beyond_limits(const struct device *dev, uint32_t more_mib);

/* Bytes that the process could still get, and the total; those of its cgroup where that has a limit. */
void charge_available(const struct device *dev, uint64_t *available, uint64_t *total);

#endif
