/* Memory of a device: the container's limit and what its processes hold. */
#include "nvml_hooks.h"

static nvmlReturn_t memory_of(nvmlDevice_t device, unsigned long long *total, unsigned long long *used)
{
    int entry = granted_entry(device);
    if (entry < 0)
        return NVML_ERROR_NO_PERMISSION;
    account_sweep();
    *total = facade_open()->limits.devices[entry].memory_bytes;
    *used = account_held(&facade_open()->account, (uint32_t)entry);
    return NVML_SUCCESS;
}

static unsigned long long rest(unsigned long long total, unsigned long long used)
{
    return used < total ? total - used : 0;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result = REAL(nvmlDeviceGetMemoryInfo)(device, memory);
    if (result != NVML_SUCCESS)
        return result;
    result = memory_of(device, &memory->total, &memory->used);
    memory->free = rest(memory->total, memory->used);
    return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result = REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    if (result != NVML_SUCCESS)
        return result;
    result = memory_of(device, &memory->total, &memory->used);
    memory->free = rest(memory->total, memory->used);
    memory->reserved = 0;
    return result;
}
