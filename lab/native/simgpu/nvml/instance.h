/* Handles of GPU and compute instances. They are those of their units. */
#ifndef SIMGPU_NVML_INSTANCE_H
#define SIMGPU_NVML_INSTANCE_H

#include "core/mig.h"
#include "nvml/device.h"

#define NO_PROFILE UINT32_MAX

/* An instance that exists. */
struct live_instance {
    uint32_t unit;
    struct mig_instance state;
    const struct simgpu_mig_profile *profile;
};

/* Start of a call about a GPU that can be partitioned. */
nvmlReturn_t instance_find_gpu(nvmlDevice_t device, const void *out, struct simgpu_gpu **gpu);
/* Start of a call about an instance: NOT_FOUND when it no longer exists. */
nvmlReturn_t instance_find(const void *handle, const void *out, struct live_instance *found);
/* NVML's error for a result. */
nvmlReturn_t instance_error(enum mig_result result);
/* The number of a GPU's profile by nvidia-smi's id; NO_PROFILE when it has no such profile. */
uint32_t instance_find_profile(const struct simgpu_gpu *gpu, unsigned int id);

#endif
