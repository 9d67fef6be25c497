/* How busy the GPU was in the last second, as a whole and per process. */
#include "core/mig.h"
#include "core/slots.h"
#include "core/timeline.h"
#include "nvml/device.h"

#include <time.h>

#define SWEEP_PAUSE_NS 100000000

static unsigned long long read_wall_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, rates, &gpu));
    if (mig_is_enabled(&library.m, device->gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    slots_sweep(&library.m, SWEEP_PAUSE_NS);
    uint32_t busy = timeline_busy_percent(&library.m, device->gpu);
    /* Simulated kernels have no memory traffic; half of the time is a common value. */
    *rates = (nvmlUtilization_t){.gpu = busy, .memory = busy / 2};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *out,
                                             unsigned int *count, unsigned long long last_seen)
{
    struct simgpu_gpu *gpu;
    (void)last_seen;
    TRY(device_find(device, count, &gpu));
    unsigned int found = 0, room = out != NULL ? *count : 0;
    slots_sweep(&library.m, SWEEP_PAUSE_NS);
    for (uint32_t slot = 0; slot < machine_slots_used(&library.m); slot++) {
        if (slots_pid(&library.m, slot) == 0 || machine_cell(&library.m, device->gpu, slot)->contexts == 0)
            continue;
        uint32_t busy = timeline_slot_percent(&library.m, device->gpu, slot);
        if (found < room)
            out[found] = (nvmlProcessUtilizationSample_t){
                .pid = slots_pid(&library.m, slot), .timeStamp = read_wall_us(), .smUtil = busy, .memUtil = busy / 2};
        found++;
    }
    *count = found;
    if (found == 0)
        return NVML_ERROR_NOT_FOUND;
    return found <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long last_seen,
                                  nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples)
{
    enum { GPU_UTILIZATION = 1, MEMORY_UTILIZATION = 2, UNSIGNED_INT = 1 };
    struct simgpu_gpu *gpu;
    (void)last_seen;
    TRY(device_find(device, count, &gpu));
    if (type != GPU_UTILIZATION && type != MEMORY_UTILIZATION)
        return NVML_ERROR_NOT_SUPPORTED;
    if (samples != NULL) {
        if (*count < 1 || value_type == NULL)
            return NVML_ERROR_INVALID_ARGUMENT;
        uint32_t busy = timeline_busy_percent(&library.m, device->gpu);
        *value_type = UNSIGNED_INT;
        samples[0] =
            (nvmlSample_t){.timeStamp = read_wall_us(), .sampleValue.uiVal = type == GPU_UTILIZATION ? busy : busy / 2};
    }
    *count = 1;
    return NVML_SUCCESS;
}

/* The encoders are never used. */
#define IDLE_ENGINE(function)                                                                                          \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *utilization, unsigned int *period_us)                     \
    {                                                                                                                  \
        struct simgpu_gpu *gpu;                                                                                        \
        TRY(device_find(device, utilization, &gpu));                                                                   \
        if (period_us == NULL)                                                                                         \
            return NVML_ERROR_INVALID_ARGUMENT;                                                                        \
        *utilization = 0;                                                                                              \
        *period_us = 167000;                                                                                           \
        return NVML_SUCCESS;                                                                                           \
    }

IDLE_ENGINE(nvmlDeviceGetEncoderUtilization)
IDLE_ENGINE(nvmlDeviceGetDecoderUtilization)
