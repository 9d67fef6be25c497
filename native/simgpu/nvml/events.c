/* Events. XID errors are written into the machine file from outside; whoever waits finds them there. */
#include <stdlib.h>
#include <time.h>

#include "library.h"

#define LOOK_EVERY_NS 5000000u

struct nvmlEventSet_st {
    bool wanted[SIMGPU_MAX_GPUS];
    uint32_t seen[SIMGPU_MAX_GPUS]; /* number of XID events when last looked */
};

SIM_API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    if (set == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *set = calloc(1, sizeof **set);
    return *set != NULL ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

SIM_API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    free(set);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    FOR_DEVICE(device, types);
    *types = NVML_EVENT_XID;
    return NVML_SUCCESS;
}

static uint64_t xid_word(uint32_t number) {
    return __atomic_load_n(&machine_gpu(&library.m, number)->xid, __ATOMIC_SEQ_CST);
}

SIM_API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    FOR_DEVICE(device, set);
    if ((types & ~(unsigned long long)NVML_EVENT_XID) != 0) return NVML_ERROR_NOT_SUPPORTED;
    set->wanted[device->index] = true;
    set->seen[device->index] = (uint32_t)(xid_word(device->gpu) >> 32);
    return NVML_SUCCESS;
}

static bool take_event(nvmlEventSet_t set, nvmlEventData_t *data) {
    for (uint32_t i = 0; i < library.m.visible_count; i++) {
        uint64_t word = xid_word(library.m.visible[i]);
        if (!set->wanted[i] || (uint32_t)(word >> 32) == set->seen[i]) continue;
        set->seen[i] = (uint32_t)(word >> 32);
        *data = (nvmlEventData_t){.device = &library.devices[i], .eventType = NVML_EVENT_XID, .eventData = (uint32_t)word,
                                  .gpuInstanceId = NVML_NO_INSTANCE, .computeInstanceId = NVML_NO_INSTANCE};
        return true;
    }
    return false;
}

SIM_API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    if (set == NULL || data == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    uint64_t end = machine_now() + timeout_ms * 1000000ull;
    while (!take_event(set, data)) {
        if (machine_now() >= end) return NVML_ERROR_TIMEOUT;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_NS}, NULL);
    }
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
