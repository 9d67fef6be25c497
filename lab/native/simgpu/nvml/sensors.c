/* Temperature and power. They follow how busy the GPU is. */
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
