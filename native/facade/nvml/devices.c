/* The devices: those of the limits, in their order. */
#include "nvml/hooks.h"
#include "shared/assertion.h"
#include "shared/limits.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Handles of the limits' entries; NULL where the driver has no such device. */
static _Atomic(nvmlDevice_t) handles[LAMINA_MAX_DEVICES];

void granted_devices_find(void)
{
    const struct facade *facade = facade_open();
    for (uint32_t i = 0; i < facade->limits.device_count; i++) {
        nvmlDevice_t device = NULL;
        if (REAL(nvmlDeviceGetHandleByUUID)(facade->limits.devices[i].uuid, &device) != NVML_SUCCESS)
            device = NULL;
        ASSERT(i < LAMINA_MAX_DEVICES);
        handles[i] = device;
    }
}

int granted_entry(nvmlDevice_t device)
{
    char uuid[96];
    for (int i = 0; device != NULL && i < LAMINA_MAX_DEVICES; i++)
        if (handles[i] == device)
            return i;
    if (device == NULL || REAL(nvmlDeviceGetUUID)(device, uuid, sizeof uuid) != NVML_SUCCESS)
        return -1;
    return limits_find(&facade_open()->limits, uuid);
}

/* The handle at an index. Devices that the driver lacks have no index. */
static nvmlDevice_t handle_at(unsigned index)
{
    for (int i = 0; i < LAMINA_MAX_DEVICES; i++)
        if (handles[i] != NULL && index-- == 0)
            return handles[i];
    return NULL;
}

static unsigned count_devices(void)
{
    unsigned count = 0;
    while (handle_at(count) != NULL)
        count++;
    return count;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    nvmlReturn_t result = REAL(nvmlDeviceGetCount_v2)(count);
    if (result == NVML_SUCCESS)
        *count = count_devices();
    return result;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    nvmlReturn_t result = REAL(nvmlDeviceGetCount)(count);
    if (result == NVML_SUCCESS)
        *count = count_devices();
    return result;
}

static nvmlReturn_t by_index(unsigned index, nvmlDevice_t *device)
{
    unsigned count;
    nvmlReturn_t result = REAL(nvmlDeviceGetCount_v2)(&count); /* fails when NVML is not initialized */
    if (result != NVML_SUCCESS)
        return result;
    if (device == NULL || index >= count_devices())
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = handle_at(index);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return by_index(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return by_index(index, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    unsigned physical;
    nvmlReturn_t result = REAL(nvmlDeviceGetIndex)(device, &physical);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned i = 0; handle_at(i) != NULL && index != NULL; i++)
        if (handle_at(i) == device) {
            *index = i;
            return NVML_SUCCESS;
        }
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* A lookup found a device, which may be one that was not granted. */
static nvmlReturn_t if_granted(nvmlReturn_t result, nvmlDevice_t *device)
{
    if (result != NVML_SUCCESS || granted_entry(*device) >= 0)
        return result;
    *device = NULL;
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return if_granted(REAL(nvmlDeviceGetHandleByUUID)(uuid, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
    return if_granted(REAL(nvmlDeviceGetHandleByUUIDV)(uuid, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return if_granted(REAL(nvmlDeviceGetHandleBySerial)(serial, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus, nvmlDevice_t *device)
{
    return if_granted(REAL(nvmlDeviceGetHandleByPciBusId)(bus, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device)
{
    return if_granted(REAL(nvmlDeviceGetHandleByPciBusId_v2)(bus, device), device);
}

/* One of the three calls that list devices. */
struct list_call {
    nvmlReturn_t (*get)(const struct list_call *call, unsigned int *count, nvmlDevice_t *devices);
    nvmlDevice_t device;
    nvmlGpuTopologyLevel_t level;
    unsigned cpu;
    nvmlUnit_t unit;
};

static nvmlReturn_t granted_of(const struct list_call *call, unsigned int *count, nvmlDevice_t *devices)
{
    enum { MAX_ENTRIES = 256 };
    nvmlDevice_t all[MAX_ENTRIES];
    unsigned found = MAX_ENTRIES, kept = 0;
    nvmlReturn_t result = count == NULL ? NVML_ERROR_INVALID_ARGUMENT : call->get(call, &found, all);
    for (unsigned i = 0; result == NVML_SUCCESS && i < found && i < MAX_ENTRIES; i++)
        if (granted_entry(all[i]) >= 0)
            all[kept++] = all[i];
    if (result != NVML_SUCCESS)
        return result;
    if (devices != NULL)
        memcpy(devices, all, (kept < *count ? kept : *count) * sizeof *devices);
    *count = kept;
    return NVML_SUCCESS;
}

static nvmlReturn_t list_nearest(const struct list_call *call, unsigned int *count, nvmlDevice_t *devices)
{
    return REAL(nvmlDeviceGetTopologyNearestGpus)(call->device, call->level, count, devices);
}

static nvmlReturn_t list_of_cpu(const struct list_call *call, unsigned int *count, nvmlDevice_t *devices)
{
    return REAL(nvmlSystemGetTopologyGpuSet)(call->cpu, count, devices);
}

static nvmlReturn_t list_of_unit(const struct list_call *call, unsigned int *count, nvmlDevice_t *devices)
{
    return REAL(nvmlUnitGetDevices)(call->unit, count, devices);
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned int *count,
                                              nvmlDevice_t *devices)
{
    return granted_of(&(struct list_call){.get = list_nearest, .device = device, .level = level}, count, devices);
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count, nvmlDevice_t *devices)
{
    return granted_of(&(struct list_call){.get = list_of_cpu, .cpu = cpu}, count, devices);
}

nvmlReturn_t nvmlUnitGetDevices(nvmlUnit_t unit, unsigned int *count, nvmlDevice_t *devices)
{
    return granted_of(&(struct list_call){.get = list_of_unit, .unit = unit}, count, devices);
}
