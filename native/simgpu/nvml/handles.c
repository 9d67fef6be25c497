/* Counting GPUs and finding them. */
#include <stdio.h>
#include <string.h>

#include "library.h"

static nvmlReturn_t alive(const simgpu_gpu *gpu) {
    return __atomic_load_n(&gpu->lost, __ATOMIC_SEQ_CST) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t gpu_check(nvmlDevice_t device, simgpu_gpu **gpu) {
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    if (device < library.devices || device >= library.devices + library.m.visible_count) return NVML_ERROR_INVALID_ARGUMENT;
    *gpu = machine_gpu(&library.m, device->gpu);
    return alive(*gpu);
}

nvmlReturn_t handle_check(nvmlDevice_t device, simgpu_gpu **gpu) {
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    if (device < library.units || device >= library.units + library.m.head->unit_count) return gpu_check(device, gpu);
    if (!mig_visible(&library.m, device->gpu)) return NVML_ERROR_INVALID_ARGUMENT;
    *gpu = machine_gpu(&library.m, device->gpu);
    return alive(machine_gpu(&library.m, (*gpu)->parent));
}

SIM_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    if (count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *count = library.m.visible_count;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) { return nvmlDeviceGetCount_v2(count); }

SIM_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    if (device == NULL || index >= library.m.visible_count) return NVML_ERROR_INVALID_ARGUMENT;
    *device = &library.devices[index];
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* The GPU with this text at `offset` of its record. */
static nvmlReturn_t find_text(const char *text, size_t offset, nvmlDevice_t *device) {
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    if (text == NULL || device == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < library.m.visible_count; i++) {
        const char *own = (const char *)machine_gpu(&library.m, library.m.visible[i]) + offset;
        if (strcasecmp(own, text) != 0) continue;
        *device = &library.devices[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    nvmlReturn_t result = find_text(uuid, offsetof(simgpu_gpu, uuid), device);
    if (result != NVML_ERROR_NOT_FOUND) return result;
    for (uint32_t unit = library.m.head->gpu_count; unit < library.m.head->unit_count; unit++) {
        if (!mig_visible(&library.m, unit) || strcasecmp(machine_gpu(&library.m, unit)->uuid, uuid) != 0) continue;
        *device = &library.units[unit];
        return NVML_SUCCESS;
    }
    return result;
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
    return find_text(serial, offsetof(simgpu_gpu, serial), device);
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device) {
    unsigned int domain, bus, slot;
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    if (bus_id == NULL || device == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(bus_id, "%x:%x", &bus, &slot) != 2) return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (uint32_t i = 0; i < library.m.visible_count; i++) {
        simgpu_gpu *gpu = machine_gpu(&library.m, library.m.visible[i]);
        if (gpu->pci_domain != domain || gpu->pci_bus != bus || gpu->pci_slot != slot) continue;
        *device = &library.devices[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}
