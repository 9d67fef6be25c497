/* What the hooks of NVML need: the table of entry points, prototypes of the driver's functions, the granted devices. */
#ifndef LAMINA_NVML_HOOKS_H
#define LAMINA_NVML_HOOKS_H

#include "shared/facade.h"
#include "shared/table.h"

/* The hooks are exported under the driver's names. */
#pragma GCC visibility push(default)
#include "nvml_prototypes.h"
#pragma GCC visibility pop

/* Finds the granted devices among the driver's, once it is initialized. */
void granted_devices_find(void);

/* The entry of the limits behind a handle, or -1 for a device that was not granted. */
int granted_entry(nvmlDevice_t device);

/* The slot of a pid, or NULL when the container has no such process. */
struct lamina_slot *slot_of_pid(unsigned pid);

/* Frees the slots of dead processes, at most every 100 ms, so that what is shown is up to date. */
void reclaim_dead_processes(void);

#endif
