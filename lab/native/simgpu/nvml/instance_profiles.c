/* Profiles of GPU instances: what each one has, and where it may be. */
#include "nvml/instance.h"

#include <stdio.h>

/* By NVML's own number of a profile, which nvidia-smi does not show. */
static uint32_t find_by_index(const struct simgpu_gpu *gpu, unsigned int index)
{
    for (uint32_t i = 0; i < gpu->mig_profiles; i++)
        if (gpu->profiles[i].index == index)
            return i;
    return NO_PROFILE;
}

static nvmlReturn_t describe(const struct simgpu_gpu *gpu, uint32_t number, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    if (number == NO_PROFILE)
        return NVML_ERROR_NOT_SUPPORTED;
    if (info->version != NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    const struct simgpu_mig_profile *p = &gpu->profiles[number];
    *info = (nvmlGpuInstanceProfileInfo_v2_t){.version = info->version,
                                              .id = p->id,
                                              .sliceCount = p->slices,
                                              .instanceCount = p->most,
                                              .multiprocessorCount = p->sms,
                                              .copyEngineCount = p->copy_engines,
                                              .decoderCount = p->decoders,
                                              .encoderCount = p->encoders,
                                              .jpegCount = p->jpeg,
                                              .ofaCount = p->ofa,
                                              .memorySizeMB = p->memory_mib};
    snprintf(info->name, sizeof info->name, "MIG %s", p->name);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
                                                  nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct simgpu_gpu *gpu;
    TRY(instance_find_gpu(device, info, &gpu));
    return describe(gpu, find_by_index(gpu, profile), info);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int id,
                                                      nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct simgpu_gpu *gpu;
    TRY(instance_find_gpu(device, info, &gpu));
    return describe(gpu, instance_find_profile(gpu, id), info);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                 nvmlGpuInstanceProfileInfo_t *info)
{
    struct simgpu_gpu *gpu;
    nvmlGpuInstanceProfileInfo_v2_t all = {.version = NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2)};
    TRY(instance_find_gpu(device, info, &gpu));
    TRY(describe(gpu, find_by_index(gpu, profile), &all));
    *info = (nvmlGpuInstanceProfileInfo_t){.id = all.id,
                                           .sliceCount = all.sliceCount,
                                           .instanceCount = all.instanceCount,
                                           .multiprocessorCount = all.multiprocessorCount,
                                           .copyEngineCount = all.copyEngineCount,
                                           .decoderCount = all.decoderCount,
                                           .encoderCount = all.encoderCount,
                                           .jpegCount = all.jpegCount,
                                           .ofaCount = all.ofaCount,
                                           .memorySizeMB = all.memorySizeMB};
    return NVML_SUCCESS;
}

/* Every place of the profile, whatever is there now. */
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id,
                                                           nvmlGpuInstancePlacement_t *out, unsigned int *count)
{
    struct simgpu_gpu *gpu;
    TRY(instance_find_gpu(device, count, &gpu));
    uint32_t number = instance_find_profile(gpu, id);
    if (number == NO_PROFILE)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int room = *count, found = 0;
    for (uint32_t start = 0; start < gpu->mig_slices; start++) {
        if (!(gpu->profiles[number].starts >> start & 1))
            continue;
        if (out != NULL && found < room)
            out[found] = (nvmlGpuInstancePlacement_t){start, gpu->profiles[number].size};
        found++;
    }
    *count = found;
    return out == NULL || found <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* How many more instances fit, from the first place on. */
nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id, unsigned int *count)
{
    struct simgpu_gpu *gpu;
    TRY(instance_find_gpu(device, count, &gpu));
    uint32_t number = instance_find_profile(gpu, id);
    if (number == NO_PROFILE)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct simgpu_mig_profile *profile = &gpu->profiles[number];
    uint32_t free = 0, next = 0;
    if (mig_is_enabled(&library.m, device->gpu))
        free = mig_free_places(&library.m, device->gpu, number);
    *count = 0;
    for (uint32_t start = 0; start < gpu->mig_slices; start++)
        if (free >> start & 1 && start >= next)
            (*count)++, next = start + profile->size;
    if (profile->media > 0 && *count > profile->most)
        *count = profile->most;
    return NVML_SUCCESS;
}
