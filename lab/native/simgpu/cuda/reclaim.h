/* Taking memory of a device when it is short: before a refusal, everything that a driver can free is freed. */
#ifndef SIMGPU_RECLAIM_H
#define SIMGPU_RECLAIM_H

#include "cuda/driver.h"

/* False when there is no space even then. Call this with the driver's lock held. */
bool reclaim_take(struct device *dev, uint32_t mib);

#endif
