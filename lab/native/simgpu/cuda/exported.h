/* Allocations that other processes may open. core/imports.c says which of them are open. */
#ifndef SIMGPU_EXPORTED_H
#define SIMGPU_EXPORTED_H

#include "core/imports.h"
#include "cuda/device.h"

/* What others open as an allocation of this process, which has this number. */
imported exported_describe(const device *dev, uint64_t number, uint32_t mib);
bool exported_is_own(const imported *what);
/* Whether its owner has not ended. */
bool exported_has_owner(const imported *what);
/* Opens and closes it for this process. False when too much is open. */
bool exported_open(const imported *what);
void exported_close(const imported *what);

#endif
