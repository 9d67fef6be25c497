#include "nvml/device.h"

#include "core/mig.h"
#include "core/pci.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

static nvmlReturn_t check_output(const struct simgpu_gpu *gpu, const void *out)
{
    if (atomic_load(&gpu->lost))
        return NVML_ERROR_GPU_IS_LOST;
    return out != NULL ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t device_find_gpu(nvmlDevice_t device, const void *out, struct simgpu_gpu **gpu)
{
    TRY(library_check_ready());
    if (device < library.devices || device >= library.devices + library.m.visible_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *gpu = machine_gpu(&library.m, device->gpu);
    return check_output(*gpu, out);
}

nvmlReturn_t device_find(nvmlDevice_t device, const void *out, struct simgpu_gpu **gpu)
{
    TRY(library_check_ready());
    if (device < library.units || device >= library.units + library.m.head->unit_count)
        return device_find_gpu(device, out, gpu);
    if (!mig_is_visible(&library.m, device->gpu))
        return NVML_ERROR_INVALID_ARGUMENT;
    *gpu = machine_gpu(&library.m, device->gpu);
    return check_output(machine_gpu(&library.m, (*gpu)->parent), out);
}

nvmlReturn_t device_find_to_change(nvmlDevice_t device, struct simgpu_gpu **gpu)
{
    TRY(device_find_gpu(device, device, gpu));
    return getenv("NVIDIA_VISIBLE_DEVICES") == NULL ? NVML_SUCCESS : NVML_ERROR_NO_PERMISSION;
}

nvmlDevice_t device_handle(uint32_t gpu)
{
    for (uint32_t i = 0; i < library.m.visible_count; i++)
        if (library.m.visible[i] == gpu)
            return &library.devices[i];
    return NULL;
}

/* Counting GPUs, and finding the handle of one. */

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    TRY(library_check_ready());
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = library.m.visible_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    TRY(library_check_ready());
    if (device == NULL || index >= library.m.visible_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &library.devices[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* The GPU with this text at `offset` of its record. */
static nvmlReturn_t find_by_text(const char *text, size_t offset, nvmlDevice_t *device)
{
    TRY(library_check_ready());
    if (text == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < library.m.visible_count; i++) {
        const char *own = (const char *)machine_gpu(&library.m, library.m.visible[i]) + offset;
        if (strcasecmp(own, text) != 0)
            continue;
        *device = &library.devices[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t result = find_by_text(uuid, offsetof(struct simgpu_gpu, uuid), device);
    if (result != NVML_ERROR_NOT_FOUND)
        return result;
    for (uint32_t unit = library.m.head->gpu_count; unit < library.m.head->unit_count; unit++) {
        if (!mig_is_visible(&library.m, unit) || strcasecmp(machine_gpu(&library.m, unit)->uuid, uuid) != 0)
            continue;
        *device = &library.units[unit];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return find_by_text(serial, offsetof(struct simgpu_gpu, serial), device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    struct pci_address address;
    TRY(library_check_ready());
    if (bus_id == NULL || device == NULL || !pci_read_address(bus_id, &address))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < library.m.visible_count; i++)
        if (pci_is_at(machine_gpu(&library.m, library.m.visible[i]), address)) {
            *device = &library.devices[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}
