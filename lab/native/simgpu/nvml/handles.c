/* Counting GPUs, and finding the handle of one. */
#include "core/mig.h"
#include "core/pci.h"
#include "nvml/device.h"

#include <stddef.h>
#include <strings.h>

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
