/* How much memory there is and how much is used. */
#include "core/cgroups.h"
#include "core/ledger.h"
#include "core/mig.h"
#include "core/slots.h"
#include "nvml/device.h"

#include <sys/stat.h>

static nvmlMemory_t read_memory(const struct nvmlDevice_st *device, const struct simgpu_gpu *gpu)
{
    slots_sweep(&library.m, MEMORY_PAUSE_NS);
    uint64_t used = ledger_used(&library.m, device->gpu);
    for (uint32_t unit = library.m.head->gpu_count; unit < library.m.head->unit_count; unit++)
        if (mig_read_instance(&library.m, unit).exists && machine_gpu(&library.m, unit)->parent == device->gpu)
            used += ledger_used(&library.m, unit);
    return (nvmlMemory_t){.total = gpu->memory_mib * MIB, .free = (gpu->memory_mib - used) * MIB, .used = used * MIB};
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, memory, &gpu));
    if (library.m.head->unified)
        return NVML_ERROR_NOT_SUPPORTED;
    *memory = read_memory(device, gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, memory, &gpu));
    if (library.m.head->unified)
        return NVML_ERROR_NOT_SUPPORTED;
    if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlMemory_t plain = read_memory(device, gpu);
    memory->total = plain.total;
    memory->reserved = 0;
    memory->free = plain.free;
    memory->used = plain.used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, memory, &gpu));
    if (library.m.head->unified)
        return NVML_ERROR_NOT_SUPPORTED;
    uint64_t total = gpu->bar1_mib * MIB, used = 2 * MIB;
    *memory = (nvmlBAR1Memory_t){.bar1Total = total, .bar1Free = total - used, .bar1Used = used};
    return NVML_SUCCESS;
}

/* ECC and the errors that it found. A simulated GPU has none. */

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, current, &gpu));
    if (pending == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->ecc == SIMGPU_NO_ECC)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = gpu->ecc;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                         unsigned long long *count)
{
    struct simgpu_gpu *gpu;
    (void)type, (void)counter;
    TRY(device_find(device, count, &gpu));
    if (gpu->ecc != 1)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                             nvmlEccCounterType_t counter, nvmlMemoryLocation_t location,
                                             unsigned long long *count)
{
    (void)location;
    return nvmlDeviceGetTotalEccErrors(device, type, counter, count);
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count,
                                       unsigned long long *addresses)
{
    struct simgpu_gpu *gpu;
    (void)cause, (void)addresses;
    TRY(device_find(device, count, &gpu));
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable, unsigned int *uncorrectable,
                                       unsigned int *pending, unsigned int *failed)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, correctable, &gpu));
    if (gpu->compute_major < 8 || gpu->ecc == SIMGPU_NO_ECC)
        return NVML_ERROR_NOT_SUPPORTED;
    if (uncorrectable == NULL || pending == NULL || failed == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *correctable = *uncorrectable = *pending = *failed = 0;
    return NVML_SUCCESS;
}

/* Limits on device memory per cgroup, as drivers have them since R615. */

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
