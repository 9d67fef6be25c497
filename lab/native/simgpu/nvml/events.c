/* Events. XID errors are written into the machine file from outside; a thread that waits finds them there. */
#include "nvml/device.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define CHECK_EVERY_NS 5000000

struct nvmlEventSet_st {
    bool wanted[SIMGPU_MAX_GPUS];
    uint32_t seen[SIMGPU_MAX_GPUS]; /* number of XID events at the last check */
};

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    TRY(library_check_ready());
    if (set == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *set = calloc(1, sizeof **set);
    return *set != NULL ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    TRY(library_check_ready());
    free(set);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, types, &gpu));
    *types = NVML_EVENT_XID;
    return NVML_SUCCESS;
}

static uint64_t read_xid(uint32_t number)
{
    return atomic_load(&machine_gpu(&library.m, number)->xid);
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, set, &gpu));
    if ((types & ~(unsigned long long)NVML_EVENT_XID) != 0)
        return NVML_ERROR_NOT_SUPPORTED;
    set->wanted[device->index] = true;
    set->seen[device->index] = (uint32_t)(read_xid(device->gpu) >> 32);
    return NVML_SUCCESS;
}

static bool take_event(nvmlEventSet_t set, nvmlEventData_t *data)
{
    for (uint32_t i = 0; i < library.m.visible_count; i++) {
        uint64_t word = read_xid(library.m.visible[i]);
        if (!set->wanted[i] || (uint32_t)(word >> 32) == set->seen[i])
            continue;
        set->seen[i] = (uint32_t)(word >> 32);
        *data = (nvmlEventData_t){.device = &library.devices[i],
                                  .eventType = NVML_EVENT_XID,
                                  .eventData = (uint32_t)word,
                                  .gpuInstanceId = NVML_NO_INSTANCE,
                                  .computeInstanceId = NVML_NO_INSTANCE};
        return true;
    }
    return false;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    TRY(library_check_ready());
    if (set == NULL || data == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    uint64_t end = machine_now() + timeout_ms * 1000000ull;
    while (!take_event(set, data)) {
        if (machine_now() >= end)
            return NVML_ERROR_TIMEOUT;
        nanosleep(&(struct timespec){.tv_nsec = CHECK_EVERY_NS}, NULL);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
