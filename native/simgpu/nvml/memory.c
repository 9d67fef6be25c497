/* How much memory there is and how much is taken. */
#include "library.h"

static nvmlMemory_t memory_of(const struct nvmlDevice_st *device, const simgpu_gpu *gpu) {
    slots_sweep(&library.m, MEMORY_PAUSE_NS);
    uint64_t used = ledger_used(&library.m, device->gpu);
    for (uint32_t unit = library.m.head->gpu_count; unit < library.m.head->unit_count; unit++)
        if (mig_read(&library.m, unit).there && machine_gpu(&library.m, unit)->parent == device->gpu)
            used += ledger_used(&library.m, unit);
    return (nvmlMemory_t){.total = gpu->memory_mib * MIB, .free = (gpu->memory_mib - used) * MIB, .used = used * MIB};
}

SIM_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    FOR_DEVICE(device, memory);
    *memory = memory_of(device, gpu);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    FOR_DEVICE(device, memory);
    if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlMemory_t plain = memory_of(device, gpu);
    memory->total = plain.total;
    memory->reserved = 0;
    memory->free = plain.free;
    memory->used = plain.used;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory) {
    FOR_DEVICE(device, memory);
    uint64_t total = gpu->bar1_mib * MIB, used = 2 * MIB;
    *memory = (nvmlBAR1Memory_t){.bar1Total = total, .bar1Free = total - used, .bar1Used = used};
    return NVML_SUCCESS;
}
