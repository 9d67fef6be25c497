/* Allocations that other processes may open. core/imports.c says which of them are open. */
#ifndef SIMGPU_EXPORTED_H
#define SIMGPU_EXPORTED_H

#include "core/imports.h"
#include "cuda/driver.h"

/* What others open as an allocation of this process, which has this number. */
struct imported exported_describe(const struct device *dev, uint64_t number, uint32_t mib);
bool exported_is_own(const struct imported *what);
/* Whether its owner has not ended. */
bool exported_has_owner(const struct imported *what);
/* The owner frees it. True when others have it open, so that it stays charged. */
bool exported_mark_freed(const struct imported *what);
/* Opens and closes it for this process. False when too much is open. */
bool exported_open(const struct imported *what);
void exported_close(const struct imported *what);

#endif
