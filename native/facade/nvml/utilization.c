/* How busy the GPU is with the container's own work, relative to what the container may use: a container that has 30 %
 * of the GPU's time and uses all of it reads 100 %. Without a share of the time, figures are of the whole GPU's time.
 *
 * The driver samples every process; those of the container are added up. If the driver does not distinguish processes,
 * or knows them by other pids than the container does, the whole GPU's figure is used, scaled the same way. */
#include "nvml/hooks.h"
#include "shared/assertion.h"
#include "shared/live_limits.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_SAMPLES = 4096 };

static unsigned int scale_to_share(unsigned int percent, const struct lamina_limit *limit)
{
    const struct facade *facade = facade_open();
    uint32_t cores = live_cores(&facade->account, (uint32_t)(limit - facade->limits.devices), monotonic_ns());
    ASSERT(limit->compute_policy == LAMINA_COMPUTE_NONE || cores > 0);
    if (limit->compute_policy != LAMINA_COMPUTE_NONE)
        percent = (percent * 100 + cores / 2) / cores;
    return percent < 100 ? percent : 100;
}

/* Adds up the samples of the container's processes; false when none of them is among the samples. */
static bool own_rates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    nvmlProcessUtilizationSample_t *samples = calloc(MAX_SAMPLES, sizeof *samples);
    unsigned int count = MAX_SAMPLES;
    bool found = false;
    *rates = (nvmlUtilization_t){0, 0};
    nvmlReturn_t result =
        samples == NULL ? NVML_ERROR_MEMORY : REAL(nvmlDeviceGetProcessUtilization)(device, samples, &count, 0);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < count && i < MAX_SAMPLES; i++)
        if (slot_of_pid(samples[i].pid) != NULL) {
            rates->gpu += samples[i].smUtil;
            rates->memory += samples[i].memUtil;
            found = true;
        }
    free(samples);
    return found;
}

static nvmlReturn_t rates_of(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    const struct facade *facade = facade_open();
    nvmlReturn_t result = REAL(nvmlDeviceGetUtilizationRates)(device, rates);
    int entry = result == NVML_SUCCESS ? granted_entry(device) : -1;
    if (result != NVML_SUCCESS || entry < 0)
        return result != NVML_SUCCESS ? result : NVML_ERROR_NO_PERMISSION;
    const struct lamina_limit *limit = &facade->limits.devices[entry];
    nvmlUtilization_t own;
    if (own_rates(device, &own))
        *rates = own;
    else if (account_held(&facade->account, (uint32_t)entry) == 0)
        *rates = (nvmlUtilization_t){0, 0};
    rates->gpu = scale_to_share(rates->gpu, limit);
    rates->memory = scale_to_share(rates->memory, limit);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    reclaim_dead_processes();
    return rates_of(device, rates);
}

/* The driver's history is of the whole GPU. For the container there is one sample, the current one. */
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long since,
                                  nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples)
{
    enum { GPU_UTILIZATION = 1, MEMORY_UTILIZATION = 2, UNSIGNED_INT = 1 };
    nvmlUtilization_t rates;
    struct timespec now;
    if (type != GPU_UTILIZATION && type != MEMORY_UTILIZATION)
        return REAL(nvmlDeviceGetSamples)(device, type, since, value_type, count, samples);
    nvmlReturn_t result = rates_of(device, &rates);
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL || (samples != NULL && (*count == 0 || value_type == NULL)))
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 1;
    if (samples == NULL)
        return NVML_SUCCESS;
    clock_gettime(CLOCK_REALTIME, &now);
    *value_type = UNSIGNED_INT;
    samples[0] =
        (nvmlSample_t){.timeStamp = (unsigned long long)now.tv_sec * 1000000u + (unsigned long long)now.tv_nsec / 1000,
                       .sampleValue.uiVal = type == GPU_UTILIZATION ? rates.gpu : rates.memory};
    return NVML_SUCCESS;
}

static const struct lamina_limit *limit_of(nvmlDevice_t device)
{
    int entry = granted_entry(device);
    return entry < 0 ? NULL : &facade_open()->limits.devices[entry];
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long since)
{
    nvmlReturn_t result = REAL(nvmlDeviceGetProcessUtilization)(device, samples, count, since);
    unsigned kept = 0;
    if (result != NVML_SUCCESS || samples == NULL)
        return result;
    const struct lamina_limit *limit = limit_of(device);
    for (unsigned i = 0; limit != NULL && i < *count; i++)
        if (slot_of_pid(samples[i].pid) != NULL) {
            samples[kept] = samples[i];
            samples[kept].smUtil = scale_to_share(samples[i].smUtil, limit);
            samples[kept++].memUtil = scale_to_share(samples[i].memUtil, limit);
        }
    *count = kept;
    return kept == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info)
{
    nvmlReturn_t result = REAL(nvmlDeviceGetProcessesUtilizationInfo)(device, info);
    unsigned kept = 0;
    if (result != NVML_SUCCESS || info->procUtilArray == NULL)
        return result;
    const struct lamina_limit *limit = limit_of(device);
    for (unsigned i = 0; limit != NULL && i < info->processSamplesCount; i++)
        if (slot_of_pid(info->procUtilArray[i].pid) != NULL) {
            info->procUtilArray[kept] = info->procUtilArray[i];
            info->procUtilArray[kept].smUtil = scale_to_share(info->procUtilArray[i].smUtil, limit);
            info->procUtilArray[kept++].memUtil = scale_to_share(info->procUtilArray[i].memUtil, limit);
        }
    info->processSamplesCount = kept;
    return kept == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}
