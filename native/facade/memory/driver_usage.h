/* What the driver itself says that this process, or all processes, use on a device. Read by NVML. */
#ifndef LAMINA_DRIVER_USAGE_H
#define LAMINA_DRIVER_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes on the device. False when the driver does not say. */
bool driver_usage_of_process(int device, uint64_t *bytes);
bool driver_usage_of_device(int device, uint64_t *bytes);

/* Which processes the driver lists on a device, by its own pids, which may be those of another namespace. */
struct driver_list {
    unsigned count;
    unsigned pids[128];
};

/* False when the driver does not say, or lists more. */
bool driver_list_read(int device, struct driver_list *list);

/* How many processes are listed that were not on the list before, and the figure of one of them. A process whose first
 * context was made in between is one, so where there is no other, the figure is its own. */
unsigned driver_list_newcomers(int device, const struct driver_list *before, uint64_t *bytes);

/* Drops the NVML handles, in a forked child. */
void driver_usage_after_fork(void);

#endif
