/* GPU instances: creating, destroying and listing them. */
#include "nvml/instance.h"

static nvmlReturn_t create(nvmlDevice_t device, unsigned int id, unsigned int start, nvmlGpuInstance_t *out)
{
    struct simgpu_gpu *gpu;
    uint32_t unit;
    TRY(instance_find_gpu(device, out, &gpu));
    uint32_t number = instance_find_profile(gpu, id);
    if (number == NO_PROFILE)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(instance_error(mig_create(&library.m, device->gpu, number, start, &unit)));
    *out = (nvmlGpuInstance_t)&library.units[unit];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *out)
{
    return create(device, id, MIG_ANYWHERE, out);
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int id,
                                                      const nvmlGpuInstancePlacement_t *at, nvmlGpuInstance_t *out)
{
    return at != NULL ? create(device, id, at->start, out) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle)
{
    struct live_instance found;
    TRY(instance_find(handle, handle, &found));
    return instance_error(mig_destroy(&library.m, found.unit));
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *out,
                                       unsigned int *count)
{
    struct simgpu_gpu *gpu;
    TRY(instance_find_gpu(device, count, &gpu));
    uint32_t number = instance_find_profile(gpu, id);
    if (number == NO_PROFILE || out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned int next = 0; next < 2 * gpu->mig_slices; next++) /* in the order of their ids */
        for (uint32_t unit = gpu->first_unit; unit < gpu->first_unit + SIMGPU_MIG_UNITS; unit++) {
            struct mig_instance i = mig_read_instance(&library.m, unit);
            if (i.exists && i.id == next && i.profile == number)
                out[(*count)++] = (nvmlGpuInstance_t)&library.units[unit];
        }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *out)
{
    struct simgpu_gpu *gpu;
    TRY(instance_find_gpu(device, out, &gpu));
    for (uint32_t unit = gpu->first_unit; unit < gpu->first_unit + SIMGPU_MIG_UNITS; unit++) {
        struct mig_instance i = mig_read_instance(&library.m, unit);
        if (!i.exists || i.id != id)
            continue;
        *out = (nvmlGpuInstance_t)&library.units[unit];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info)
{
    struct live_instance found;
    TRY(instance_find(handle, info, &found));
    *info = (nvmlGpuInstanceInfo_t){.device = device_handle(machine_gpu(&library.m, found.unit)->parent),
                                    .id = found.state.id,
                                    .profileId = found.profile->id,
                                    .placement = {found.state.start, found.profile->size}};
    return NVML_SUCCESS;
}
