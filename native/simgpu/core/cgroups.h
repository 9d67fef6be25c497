/* The driver's own limits on device memory, per cgroup.
 *
 * A process belongs to the cgroup that SIMGPU_CGROUP names, by its full path; without it to its cgroup v2 below
 * /sys/fs/cgroup. The limits are in a file beside the machine's, `<machine>.cgroups`, which the first setting makes.
 * They hold for processes of exactly this cgroup, not for those of cgroups below it. */
#ifndef SIMGPU_CGROUPS_H
#define SIMGPU_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "machine.h"

#define CGROUP_LIMITS 1024u
#define CGROUP_UNLIMITED UINT64_MAX

typedef struct {
    uint64_t cgroup; /* 0: free */
    uint64_t gpu, soft, hard;
} cgroup_limit;

/* Names a cgroup by its path; never 0. */
uint64_t cgroup_named(const char *path);
uint64_t cgroup_of_self(void);

/* False when the file cannot be made or is full. */
bool cgroups_set(cgroup_limit limit);
/* False when nothing was ever set for this cgroup on this GPU. */
bool cgroups_get(uint64_t cgroup, uint32_t gpu, cgroup_limit *limit);
/* Bytes that the processes of a cgroup hold; managed memory is not among them. */
uint64_t cgroups_used(const machine *m, uint64_t cgroup, uint32_t gpu);

#endif
