/* Modes. Only the compute mode and the length of turns can be changed: the others take root on a real machine. */
#include "core/timeline.h"
#include "nvml/device.h"

#include <stdatomic.h>

enum { COMPUTE_MODE_EXCLUSIVE_THREAD = 1, COMPUTE_MODE_EXCLUSIVE_PROCESS = 3 };

/* A change that takes root. */
#define REFUSED(function, type)                                                                                        \
    nvmlReturn_t function(nvmlDevice_t device, type value)                                                             \
    {                                                                                                                  \
        struct simgpu_gpu *gpu;                                                                                        \
        (void)value;                                                                                                   \
        TRY(device_find(device, device, &gpu));                                                                        \
        return NVML_ERROR_NO_PERMISSION;                                                                               \
    }

DEVICE_VALUE(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, gpu->persistence)
DEVICE_VALUE(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
DEVICE_VALUE(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
DEVICE_VALUE(nvmlDeviceGetAccountingMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
DEVICE_VALUE(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, 0)
REFUSED(nvmlDeviceSetPersistenceMode, nvmlEnableState_t)
REFUSED(nvmlDeviceSetEccMode, nvmlEnableState_t)
REFUSED(nvmlDeviceSetPowerManagementLimit, unsigned int)

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
    struct simgpu_gpu *gpu;
    TRY(device_find_gpu(device, mode, &gpu));
    *mode = atomic_load(&gpu->compute_mode);
    return NVML_SUCCESS;
}

/* Drivers no longer have the mode for exclusive threads. */
nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode)
{
    struct simgpu_gpu *gpu;
    TRY(device_find_to_change(device, &gpu));
    if (mode > COMPUTE_MODE_EXCLUSIVE_PROCESS)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (mode == COMPUTE_MODE_EXCLUSIVE_THREAD)
        return NVML_ERROR_NOT_SUPPORTED;
    atomic_store(&gpu->compute_mode, mode);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, nvmlRestrictedAPI_t api, nvmlEnableState_t *restricted)
{
    struct simgpu_gpu *gpu;
    (void)api;
    TRY(device_find(device, restricted, &gpu));
    *restricted = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

/* The driver model is a choice on Windows. */
nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, nvmlDriverModel_t *current, nvmlDriverModel_t *pending)
{
    struct simgpu_gpu *gpu;
    (void)current, (void)pending;
    TRY(device_find(device, device, &gpu));
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, nvmlDriverModel_t *current, nvmlDriverModel_t *pending)
{
    return nvmlDeviceGetDriverModel_v2(device, current, pending);
}

/* The length of turns on a GPU. NVML has no call for it: NVIDIA's nvidia-smi queries the driver without NVML, and ours
 * queries the simulated driver by these two. */

nvmlReturn_t simgpuDeviceGetTimeSlice(nvmlDevice_t device, unsigned int *slice)
{
    struct simgpu_gpu *gpu;
    TRY(device_find_gpu(device, slice, &gpu));
    *slice = timeline_slice(&library.m, device->gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t simgpuDeviceSetTimeSlice(nvmlDevice_t device, unsigned int slice)
{
    struct simgpu_gpu *gpu;
    TRY(device_find_to_change(device, &gpu));
    return timeline_set_slice(&library.m, device->gpu, slice) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
