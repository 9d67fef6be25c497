/* The driver's own limits on device memory, per cgroup.
 *
 * A process belongs to the cgroup that SIMGPU_CGROUP names, by its full path; without it, to its cgroup v2 below
 * /sys/fs/cgroup. The limits are in a file next to the machine's, `<machine>.cgroups`, which the first setting creates.
 * They apply to processes of exactly this cgroup, not to those of cgroups below it. */
#ifndef SIMGPU_CGROUPS_H
#define SIMGPU_CGROUPS_H

#include "core/machine.h"

#include <stdbool.h>
#include <stdint.h>

#define CGROUP_LIMITS 1024
#define CGROUP_UNLIMITED UINT64_MAX

struct cgroup_limit {
    uint64_t cgroup; /* 0: free */
    uint64_t gpu, soft, hard;
};

/* The number that stands for the cgroup at a path; never 0. */
uint64_t cgroup_from_path(const char *path);
uint64_t cgroup_of_self(void);

/* Whether the driver is one that limits the memory of cgroups: R615 and later. */
bool cgroups_supported(const struct machine *m);
/* False when the file cannot be created or is full. */
bool cgroups_set_limit(struct cgroup_limit limit);
/* False when no limit was ever set for this cgroup on this GPU. */
bool cgroups_find_limit(uint64_t cgroup, uint32_t gpu, struct cgroup_limit *limit);

#endif
