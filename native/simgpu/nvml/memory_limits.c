/* Limits on device memory per cgroup, as drivers have them since R615. */
#include <sys/stat.h>

#include "cgroups.h"
#include "library.h"

static nvmlReturn_t cgroup_at(const char *path, uint64_t *cgroup) {
    struct stat about;
    if (!machine_limits_cgroups(&library.m)) return NVML_ERROR_NOT_SUPPORTED;
    if (path == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (stat(path, &about) != 0) return NVML_ERROR_OPERATING_SYSTEM;
    *cgroup = cgroup_named(path);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t device, nvmlSetMemoryLimits_v1_t *limits) {
    uint64_t cgroup;
    FOR_DEVICE(device, limits);
    nvmlReturn_t result = cgroup_at(limits->nameSpace, &cgroup);
    if (result != NVML_SUCCESS) return result;
    uint64_t total = gpu->memory_mib * MIB;
    bool unlimited = limits->hardLimit == NVML_DEVICE_MEMORY_LIMIT_MAX;
    if (limits->softLimit > limits->hardLimit || limits->softLimit > total || (!unlimited && limits->hardLimit > total))
        return NVML_ERROR_INVALID_ARGUMENT;
    cgroup_limit limit = {cgroup, device->gpu, limits->softLimit, unlimited ? CGROUP_UNLIMITED : limits->hardLimit};
    return cgroups_set(limit) ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

SIM_API nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits) {
    uint64_t cgroup;
    cgroup_limit limit;
    FOR_DEVICE(device, limits);
    nvmlReturn_t result = cgroup_at(limits->nameSpace, &cgroup);
    if (result != NVML_SUCCESS) return result;
    if (!cgroups_get(cgroup, device->gpu, &limit)) return NVML_ERROR_NOT_FOUND;
    slots_sweep(&library.m, 0);
    limits->softLimit = limit.soft;
    limits->hardLimit = limit.hard;
    limits->currentUsed = cgroups_used(&library.m, cgroup, device->gpu);
    return NVML_SUCCESS;
}
