/* Heat, power and clocks. They follow how busy the GPU is. */
#include "library.h"

static unsigned int busy(nvmlDevice_t device) { return timeline_busy_percent(&library.m, device->gpu); }

static bool in_use(nvmlDevice_t device) { return ledger_used(&library.m, device->gpu) > 0; }

static int degrees(nvmlDevice_t device, const simgpu_gpu *gpu) {
    return (int)(gpu->temperature + busy(device) * 35 / 100);
}

SIM_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *out) {
    FOR_DEVICE(device, out);
    if (sensor != 0) return NVML_ERROR_INVALID_ARGUMENT;
    *out = (unsigned int)degrees(device, gpu);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *out) {
    FOR_DEVICE(device, out);
    if (out->version != NVML_STRUCT_VERSION(nvmlTemperature_t, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (out->sensorType != 0) return NVML_ERROR_INVALID_ARGUMENT;
    out->temperature = degrees(device, gpu);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int threshold, unsigned int *out) {
    FOR_DEVICE(device, out);
    if (threshold < 0 || threshold > 3) return NVML_ERROR_NOT_SUPPORTED;
    *out = (unsigned int[]){90, 87, 85, 83}[threshold];
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *out) {
    FOR_DEVICE(device, out);
    return NVML_ERROR_NOT_SUPPORTED; /* data centre cards have none */
}

SIM_API nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *out) {
    (void)fan;
    return nvmlDeviceGetFanSpeed(device, out);
}

SIM_API nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int *out) {
    FOR_DEVICE(device, out);
    *out = 0;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *out) {
    FOR_DEVICE(device, out);
    *out = gpu->power_idle_mw + (gpu->power_limit_mw - gpu->power_idle_mw) / 100 * busy(device) * 85 / 100;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *out) {
    FOR_DEVICE(device, out);
    *out = gpu->power_limit_mw;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *out) {
    return nvmlDeviceGetPowerManagementLimit(device, out);
}

SIM_API nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *out) {
    return nvmlDeviceGetPowerManagementLimit(device, out);
}

SIM_API nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *least,
                                                                  unsigned int *most) {
    FOR_DEVICE(device, least);
    if (most == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *least = gpu->power_limit_mw * 2 / 5;
    *most = gpu->power_limit_mw;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, unsigned int *out) {
    FOR_DEVICE(device, out);
    *out = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned int *out) {
    FOR_DEVICE(device, out);
    *out = 0;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, unsigned int *out) {
    return nvmlDeviceGetPerformanceState(device, out);
}

SIM_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *mhz) {
    FOR_DEVICE(device, mhz);
    if (type < NVML_CLOCK_GRAPHICS || type > NVML_CLOCK_VIDEO) return NVML_ERROR_INVALID_ARGUMENT;
    *mhz = type == NVML_CLOCK_MEM ? gpu->memory_clock_mhz : gpu->sm_clock_mhz;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *mhz) {
    nvmlReturn_t result = nvmlDeviceGetMaxClockInfo(device, type, mhz);
    if (result == NVML_SUCCESS && type != NVML_CLOCK_MEM && !in_use(device)) *mhz = 135; /* asleep */
    return result;
}

SIM_API nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, int type, unsigned int *mhz) {
    return nvmlDeviceGetMaxClockInfo(device, type, mhz);
}

SIM_API nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, int type, int which, unsigned int *mhz) {
    return which == 0 ? nvmlDeviceGetClockInfo(device, type, mhz) : nvmlDeviceGetMaxClockInfo(device, type, mhz);
}

static nvmlReturn_t clock_reasons(nvmlDevice_t device, unsigned long long *reasons) {
    FOR_DEVICE(device, reasons);
    *reasons = in_use(device) ? 0 : 1; /* 1: idle */
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
    return clock_reasons(device, reasons);
}

SIM_API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons) {
    return clock_reasons(device, reasons);
}

SIM_API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int counter, unsigned int *kib_per_second) {
    FOR_DEVICE(device, kib_per_second);
    (void)counter;
    *kib_per_second = 0;
    return NVML_SUCCESS;
}
