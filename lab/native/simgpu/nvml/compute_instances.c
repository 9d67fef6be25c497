/* Compute instances. A GPU instance has at most one, which takes all of it and has the id 0. */
#include "nvml/instance.h"

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
