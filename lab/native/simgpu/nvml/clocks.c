/* Clocks. They are at their highest while a process uses the GPU. */
#include "core/ledger.h"
#include "nvml/device.h"

#define IDLE_MHZ 135

enum { CURRENT_CLOCK = 0, REASON_IDLE = 1 };

static bool is_in_use(nvmlDevice_t device)
{
    return ledger_used(&library.m, device->gpu) > 0;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, mhz, &gpu));
    if (type > NVML_CLOCK_VIDEO)
        return NVML_ERROR_INVALID_ARGUMENT;
    *mhz = type == NVML_CLOCK_MEM ? gpu->memory_clock_mhz : gpu->sm_clock_mhz;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    TRY(nvmlDeviceGetMaxClockInfo(device, type, mhz));
    if (type != NVML_CLOCK_MEM && !is_in_use(device))
        *mhz = IDLE_MHZ;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    return nvmlDeviceGetMaxClockInfo(device, type, mhz);
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t which, unsigned int *mhz)
{
    return which == CURRENT_CLOCK ? nvmlDeviceGetClockInfo(device, type, mhz)
                                  : nvmlDeviceGetMaxClockInfo(device, type, mhz);
}

DEVICE_VALUE(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, is_in_use(device) ? 0 : REASON_IDLE)
DEVICE_VALUE(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, is_in_use(device) ? 0 : REASON_IDLE)
