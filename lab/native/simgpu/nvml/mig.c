/* MIG devices: the mode, and queries about a device that may be one. */
#include "core/mig.h"
#include "nvml/device.h"
#include "nvml/instance.h"

#include <stdatomic.h>

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    struct simgpu_gpu *gpu;
    TRY(device_find_gpu(device, current, &gpu));
    if (pending == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!gpu->mig_capable)
        return NVML_ERROR_NOT_SUPPORTED;
    uint32_t mode = atomic_load(&gpu->mig_mode);
    *current = mode & MIG_ENABLED ? 1 : 0;
    *pending = mode & MIG_PENDING ? 1 : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *status)
{
    struct simgpu_gpu *gpu;
    TRY(instance_find_gpu(device, status, &gpu));
    if (mode > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    *status = instance_error(mig_set_mode(&library.m, device->gpu, mode));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, is_mig, &gpu));
    *is_mig = mig_read_instance(&library.m, device->gpu).exists;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    struct simgpu_gpu *gpu;
    TRY(device_find_gpu(device, count, &gpu));
    *count = gpu->mig_capable ? SIMGPU_MIG_UNITS : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *out)
{
    struct simgpu_gpu *gpu;
    TRY(instance_find_gpu(device, out, &gpu));
    for (uint32_t unit = gpu->first_unit; unit < gpu->first_unit + SIMGPU_MIG_UNITS; unit++) {
        if (!mig_is_visible(&library.m, unit) || index-- > 0)
            continue;
        *out = &library.units[unit];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

/* The instance behind a MIG device; an error for a whole GPU. */
static nvmlReturn_t find_mig_device(nvmlDevice_t device, const void *out, struct mig_instance *instance)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, out, &gpu));
    *instance = mig_read_instance(&library.m, device->gpu);
    return instance->exists ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    struct mig_instance instance;
    TRY(find_mig_device(device, id, &instance));
    *id = instance.id;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    struct mig_instance instance;
    TRY(find_mig_device(device, id, &instance));
    *id = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *out)
{
    struct mig_instance instance;
    TRY(find_mig_device(device, out, &instance));
    *out = device_handle(machine_gpu(&library.m, device->gpu)->parent);
    return NVML_SUCCESS;
}
