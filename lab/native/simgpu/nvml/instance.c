#include "nvml/instance.h"

nvmlReturn_t instance_error(enum mig_result result)
{
    switch (result) {
    case MIG_OK:
        return NVML_SUCCESS;
    case MIG_BUSY:
        return NVML_ERROR_IN_USE;
    case MIG_NO_SPACE:
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    case MIG_NOT_FOUND:
        return NVML_ERROR_NOT_FOUND;
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

nvmlReturn_t instance_find_gpu(nvmlDevice_t device, const void *out, struct simgpu_gpu **gpu)
{
    TRY(device_find_gpu(device, out, gpu));
    return (*gpu)->mig_capable ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t instance_find(const void *handle, const void *out, struct live_instance *found)
{
    const struct nvmlDevice_st *at = handle;
    TRY(library_check_ready());
    if (out == NULL || at < library.units + library.m.head->gpu_count ||
        at >= library.units + library.m.head->unit_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct mig_instance state = mig_read_instance(&library.m, at->gpu);
    *found =
        (struct live_instance){.unit = at->gpu, .state = state, .profile = mig_profile_of(&library.m, at->gpu, state)};
    return state.exists ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

uint32_t instance_find_profile(const struct simgpu_gpu *gpu, unsigned int id)
{
    for (uint32_t i = 0; i < gpu->mig_profiles; i++)
        if (gpu->profiles[i].id == id)
            return i;
    return NO_PROFILE;
}

/* GPU instances: creating, destroying and listing them. */

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

/* Compute instances. A GPU instance has at most one, which takes all of it and has the id 0. */

#define ONLY_ID 0

/* The compute profile of a GPU instance is the one of all its slices: NVML's number is one less than the slices, with 4
 * for seven. nvidia-smi's id is the same. */
static unsigned int profile_of(const struct live_instance *i)
{
    return i->profile->slices == 7 ? 4 : i->profile->slices - 1;
}

static nvmlReturn_t find_compute(const void *handle, const void *out, struct live_instance *found)
{
    TRY(instance_find(handle, out, found));
    return found->state.compute ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned int profile,
                                                          unsigned int engines, nvmlComputeInstanceProfileInfo_t *info)
{
    struct live_instance i;
    TRY(instance_find(handle, info, &i));
    if (engines != 0 || profile != profile_of(&i))
        return NVML_ERROR_NOT_SUPPORTED;
    *info = (nvmlComputeInstanceProfileInfo_t){.id = profile,
                                               .sliceCount = i.profile->slices,
                                               .instanceCount = 1,
                                               .multiprocessorCount = i.profile->sms,
                                               .sharedCopyEngineCount = i.profile->copy_engines,
                                               .sharedDecoderCount = i.profile->decoders,
                                               .sharedEncoderCount = i.profile->encoders,
                                               .sharedJpegCount = i.profile->jpeg,
                                               .sharedOfaCount = i.profile->ofa};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle, unsigned int profile,
                                                                unsigned int *count)
{
    struct live_instance i;
    TRY(instance_find(handle, count, &i));
    *count = !i.state.compute && profile == profile_of(&i);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle, unsigned int profile,
                                                  nvmlComputeInstance_t *out)
{
    struct live_instance i;
    TRY(instance_find(handle, out, &i));
    if (profile != profile_of(&i))
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(instance_error(mig_create_compute(&library.m, i.unit)));
    *out = (nvmlComputeInstance_t)handle;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle)
{
    struct live_instance i;
    TRY(find_compute(handle, handle, &i));
    return instance_error(mig_destroy_compute(&library.m, i.unit));
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned int profile,
                                                nvmlComputeInstance_t *out, unsigned int *count)
{
    struct live_instance i;
    TRY(instance_find(handle, count, &i));
    *count = i.state.compute && profile == profile_of(&i);
    if (*count > 0 && out != NULL)
        out[0] = (nvmlComputeInstance_t)handle;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned int id,
                                                   nvmlComputeInstance_t *out)
{
    struct live_instance i;
    TRY(find_compute(handle, out, &i));
    if (id != ONLY_ID)
        return NVML_ERROR_NOT_FOUND;
    *out = (nvmlComputeInstance_t)handle;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info)
{
    struct live_instance i;
    TRY(find_compute(handle, info, &i));
    *info = (nvmlComputeInstanceInfo_t){.device = device_handle(machine_gpu(&library.m, i.unit)->parent),
                                        .gpuInstance = (nvmlGpuInstance_t)handle,
                                        .id = ONLY_ID,
                                        .profileId = profile_of(&i),
                                        .placement = {0, i.profile->slices}};
    return NVML_SUCCESS;
}
