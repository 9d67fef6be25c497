/* How much memory there is and how much is used. */
#include "core/ledger.h"
#include "core/mig.h"
#include "core/slots.h"
#include "nvml/device.h"

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
    *memory = read_memory(device, gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, memory, &gpu));
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
    uint64_t total = gpu->bar1_mib * MIB, used = 2 * MIB;
    *memory = (nvmlBAR1Memory_t){.bar1Total = total, .bar1Free = total - used, .bar1Used = used};
    return NVML_SUCCESS;
}
