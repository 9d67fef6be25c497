/* Limits on device memory per cgroup, as drivers have them since R615. */
#include "core/cgroups.h"
#include "core/slots.h"
#include "nvml/device.h"

#include <sys/stat.h>

static nvmlReturn_t find_cgroup(const char *path, uint64_t *cgroup)
{
    struct stat about;
    if (!cgroups_supported(&library.m))
        return NVML_ERROR_NOT_SUPPORTED;
    if (path == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (stat(path, &about) != 0)
        return NVML_ERROR_OPERATING_SYSTEM;
    *cgroup = cgroup_from_path(path);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t device, nvmlSetMemoryLimits_v1_t *limits)
{
    struct simgpu_gpu *gpu;
    uint64_t cgroup;
    TRY(device_find(device, limits, &gpu));
    TRY(find_cgroup(limits->nameSpace, &cgroup));
    uint64_t total = gpu->memory_mib * MIB;
    bool unlimited = limits->hardLimit == NVML_DEVICE_MEMORY_LIMIT_MAX;
    if (limits->softLimit > limits->hardLimit || limits->softLimit > total || (!unlimited && limits->hardLimit > total))
        return NVML_ERROR_INVALID_ARGUMENT;
    struct cgroup_limit limit = {cgroup, device->gpu, limits->softLimit,
                                 unlimited ? CGROUP_UNLIMITED : limits->hardLimit};
    return cgroups_set_limit(limit) ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits)
{
    struct simgpu_gpu *gpu;
    uint64_t cgroup;
    struct cgroup_limit limit;
    TRY(device_find(device, limits, &gpu));
    TRY(find_cgroup(limits->nameSpace, &cgroup));
    if (!cgroups_find_limit(cgroup, device->gpu, &limit))
        return NVML_ERROR_NOT_FOUND;
    slots_sweep(&library.m, 0);
    limits->softLimit = limit.soft;
    limits->hardLimit = limit.hard;
    limits->currentUsed = slots_cgroup_bytes(&library.m, cgroup, device->gpu);
    return NVML_SUCCESS;
}
