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
