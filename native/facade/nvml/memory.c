/* Memory of a device: the container's limit and what its processes hold. */
#include "nvml/hooks.h"
#include "shared/live_limits.h"

#include <stdbool.h>

static nvmlReturn_t memory_of(nvmlDevice_t device, unsigned long long *total, unsigned long long *used)
{
    int entry = granted_entry(device);
    if (entry < 0)
        return NVML_ERROR_NO_PERMISSION;
    reclaim_dead_processes();
    *total = live_memory(&facade_open()->account, (uint32_t)entry);
    *used = account_held(&facade_open()->account, (uint32_t)entry);
    return NVML_SUCCESS;
}

/* Where GPUs use the host's memory, NVML has no figure of it. The limit and the account are there nevertheless. */
static bool lacks_only_figures(nvmlReturn_t result, const void *memory)
{
    return result == NVML_ERROR_NOT_SUPPORTED && memory != NULL;
}

static unsigned long long subtract_used(unsigned long long total, unsigned long long used)
{
    return used < total ? total - used : 0;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result = REAL(nvmlDeviceGetMemoryInfo)(device, memory);
    if (result != NVML_SUCCESS && !lacks_only_figures(result, memory))
        return result;
    result = memory_of(device, &memory->total, &memory->used);
    if (result != NVML_SUCCESS)
        return result;
    memory->free = subtract_used(memory->total, memory->used);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result = REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    if (result != NVML_SUCCESS && !lacks_only_figures(result, memory))
        return result;
    result = memory_of(device, &memory->total, &memory->used);
    if (result != NVML_SUCCESS)
        return result;
    memory->free = subtract_used(memory->total, memory->used);
    memory->reserved = 0;
    return NVML_SUCCESS;
}

/* The window through which the host accesses the GPU's memory, without what other containers use of it. */
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    unsigned long long total, used;
    nvmlReturn_t result = REAL(nvmlDeviceGetBAR1MemoryInfo)(device, memory);
    if (result == NVML_SUCCESS)
        result = memory_of(device, &total, &used);
    if (result != NVML_SUCCESS)
        return result;
    if (memory->bar1Total > total)
        memory->bar1Total = total;
    if (memory->bar1Used > used)
        memory->bar1Used = used;
    memory->bar1Free = subtract_used(memory->bar1Total, memory->bar1Used);
    return NVML_SUCCESS;
}

/* The size of a MIG device. Its memory is the limit's, if that is less. */
static nvmlReturn_t attributes_of(nvmlReturn_t result, nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    unsigned long long total, used;
    if (result == NVML_SUCCESS)
        result = memory_of(device, &total, &used);
    if (result == NVML_SUCCESS && attributes->memorySizeMB > total >> 20)
        attributes->memorySizeMB = total >> 20;
    return result;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    return attributes_of(REAL(nvmlDeviceGetAttributes)(device, attributes), device, attributes);
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    return attributes_of(REAL(nvmlDeviceGetAttributes_v2)(device, attributes), device, attributes);
}
