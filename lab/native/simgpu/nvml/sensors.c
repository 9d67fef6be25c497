/* Temperature, power and clocks. They follow how busy the GPU is. */
#include "core/ledger.h"
#include "core/timeline.h"
#include "nvml/device.h"

static unsigned int busy_percent(nvmlDevice_t device)
{
    return timeline_busy_percent(&library.m, device->gpu);
}

static unsigned int degrees(nvmlDevice_t device, const struct simgpu_gpu *gpu)
{
    return gpu->temperature + busy_percent(device) * 35 / 100;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *out)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, out, &gpu));
    if (sensor != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *out = degrees(device, gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *out)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, out, &gpu));
    if (out->version != NVML_STRUCT_VERSION(nvmlTemperature_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (out->sensorType != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    out->temperature = (int)degrees(device, gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t threshold,
                                               unsigned int *out)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, out, &gpu));
    if (threshold > 3)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = (unsigned int[]){90, 87, 85, 83}[threshold];
    return NVML_SUCCESS;
}

/* Data center GPUs have no fans. */
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *out)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, out, &gpu));
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *out)
{
    (void)fan;
    return nvmlDeviceGetFanSpeed(device, out);
}

DEVICE_VALUE(nvmlDeviceGetNumFans, unsigned int, 0)

static unsigned int power_mw(nvmlDevice_t device, const struct simgpu_gpu *gpu)
{
    return gpu->power_idle_mw + (gpu->power_limit_mw - gpu->power_idle_mw) / 100 * busy_percent(device) * 85 / 100;
}

DEVICE_VALUE(nvmlDeviceGetPowerUsage, unsigned int, power_mw(device, gpu))
DEVICE_VALUE(nvmlDeviceGetPowerManagementLimit, unsigned int, gpu->power_limit_mw)
DEVICE_VALUE(nvmlDeviceGetEnforcedPowerLimit, unsigned int, gpu->power_limit_mw)
DEVICE_VALUE(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, gpu->power_limit_mw)
DEVICE_VALUE(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
DEVICE_VALUE(nvmlDeviceGetPerformanceState, nvmlPstates_t, 0)
DEVICE_VALUE(nvmlDeviceGetPowerState, nvmlPstates_t, 0)

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *least, unsigned int *most)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, least, &gpu));
    if (most == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *least = gpu->power_limit_mw * 2 / 5;
    *most = gpu->power_limit_mw;
    return NVML_SUCCESS;
}

/* Clocks. They are at their highest while a process uses the GPU. */

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

/* Field values: none is supported, and each one says so. */

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, values, &gpu));
    for (int i = 0; i < count; i++)
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
