/* GPU and compute instances. Their handles are those of their units. */
#include <stdio.h>

#include "library.h"

#define CAPABLE(device, output) \
    FOR_GPU(device, output);    \
    if (!gpu->mig_capable) return NVML_ERROR_NOT_SUPPORTED

static nvmlReturn_t code_of(mig_result result) {
    switch (result) {
    case MIG_OK: return NVML_SUCCESS;
    case MIG_BUSY: return NVML_ERROR_IN_USE;
    case MIG_NO_ROOM: return NVML_ERROR_INSUFFICIENT_RESOURCES;
    case MIG_GONE: return NVML_ERROR_NOT_FOUND;
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

/* The number of a GPU's profile; UINT32_MAX when it has none such. */
static uint32_t by_index(const simgpu_gpu *gpu, unsigned int index) {
    for (uint32_t i = 0; i < gpu->mig_profiles; i++)
        if (gpu->profiles[i].index == index) return i;
    return UINT32_MAX;
}

static uint32_t by_id(const simgpu_gpu *gpu, unsigned int id) {
    for (uint32_t i = 0; i < gpu->mig_profiles; i++)
        if (gpu->profiles[i].id == id) return i;
    return UINT32_MAX;
}

static nvmlReturn_t tell_profile(const simgpu_gpu *gpu, uint32_t number, nvmlGpuInstanceProfileInfo_v2_t *info) {
    if (number == UINT32_MAX) return NVML_ERROR_NOT_SUPPORTED;
    if (info->version != NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    const simgpu_mig_profile *p = &gpu->profiles[number];
    *info = (nvmlGpuInstanceProfileInfo_v2_t){
        .version = info->version, .id = p->id, .sliceCount = p->slices, .instanceCount = p->most,
        .multiprocessorCount = p->sms, .copyEngineCount = p->copy_engines, .decoderCount = p->decoders,
        .encoderCount = p->encoders, .jpegCount = p->jpeg, .ofaCount = p->ofa, .memorySizeMB = p->memory_mib};
    snprintf(info->name, sizeof info->name, "MIG %s", p->name);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
                                                          nvmlGpuInstanceProfileInfo_v2_t *info) {
    CAPABLE(device, info);
    return tell_profile(gpu, by_index(gpu, profile), info);
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int id,
                                                              nvmlGpuInstanceProfileInfo_v2_t *info) {
    CAPABLE(device, info);
    return tell_profile(gpu, by_id(gpu, id), info);
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                         nvmlGpuInstanceProfileInfo_t *info) {
    CAPABLE(device, info);
    nvmlGpuInstanceProfileInfo_v2_t all = {.version = NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2)};
    nvmlReturn_t result = tell_profile(gpu, by_index(gpu, profile), &all);
    if (result == NVML_SUCCESS)
        *info = (nvmlGpuInstanceProfileInfo_t){
            .id = all.id, .sliceCount = all.sliceCount, .instanceCount = all.instanceCount,
            .multiprocessorCount = all.multiprocessorCount, .copyEngineCount = all.copyEngineCount,
            .decoderCount = all.decoderCount, .encoderCount = all.encoderCount, .jpegCount = all.jpegCount,
            .ofaCount = all.ofaCount, .memorySizeMB = all.memorySizeMB};
    return result;
}

/* Every place of the profile, whatever is there now. */
SIM_API nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id,
                                                                   nvmlGpuInstancePlacement_t *out, unsigned int *count) {
    CAPABLE(device, count);
    uint32_t number = by_id(gpu, id);
    if (number == UINT32_MAX) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int room = *count, found = 0;
    for (uint32_t start = 0; start < gpu->mig_slices; start++) {
        if (!(gpu->profiles[number].starts >> start & 1)) continue;
        if (out != NULL && found < room) out[found] = (nvmlGpuInstancePlacement_t){start, gpu->profiles[number].size};
        found++;
    }
    *count = found;
    return out == NULL || found <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id, unsigned int *count) {
    CAPABLE(device, count);
    uint32_t number = by_id(gpu, id);
    if (number == UINT32_MAX) return NVML_ERROR_INVALID_ARGUMENT;
    const simgpu_mig_profile *profile = &gpu->profiles[number];
    uint32_t free = mig_on(&library.m, device->gpu) ? mig_places(&library.m, device->gpu, number) : 0, next = 0;
    *count = 0;
    for (uint32_t start = 0; start < gpu->mig_slices; start++)
        if (free >> start & 1 && start >= next) (*count)++, next = start + profile->size;
    if (profile->media > 0 && *count > profile->most) *count = profile->most;
    return NVML_SUCCESS;
}

static nvmlReturn_t create(nvmlDevice_t device, unsigned int id, unsigned int start, nvmlGpuInstance_t *out) {
    CAPABLE(device, out);
    uint32_t number = by_id(gpu, id), unit;
    if (number == UINT32_MAX) return NVML_ERROR_INVALID_ARGUMENT;
    mig_result result = mig_create(&library.m, device->gpu, number, start, &unit);
    if (result == MIG_OK) *out = (nvmlGpuInstance_t)&library.units[unit];
    return code_of(result);
}

SIM_API nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *out) {
    return create(device, id, MIG_ANYWHERE, out);
}

SIM_API nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int id,
                                                              const nvmlGpuInstancePlacement_t *at, nvmlGpuInstance_t *out) {
    return at != NULL ? create(device, id, at->start, out) : NVML_ERROR_INVALID_ARGUMENT;
}

/* The unit of a handle whose instance is there. */
static nvmlReturn_t find(const void *handle, const void *out, uint32_t *unit, mig_instance *instance) {
    const struct nvmlDevice_st *at = handle;
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    if (out == NULL || at < library.units + library.m.head->gpu_count || at >= library.units + library.m.head->unit_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *unit = at->gpu;
    *instance = mig_read(&library.m, at->gpu);
    return instance->there ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

SIM_API nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle) {
    uint32_t unit;
    mig_instance instance;
    nvmlReturn_t result = find(handle, handle, &unit, &instance);
    return result == NVML_SUCCESS ? code_of(mig_destroy(&library.m, unit)) : result;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *out,
                                               unsigned int *count) {
    CAPABLE(device, count);
    uint32_t number = by_id(gpu, id);
    if (number == UINT32_MAX || out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned int ident = 0; ident < 2 * gpu->mig_slices; ident++) /* in their order */
        for (uint32_t unit = gpu->first_unit; unit < gpu->first_unit + SIMGPU_MIG_UNITS; unit++) {
            mig_instance i = mig_read(&library.m, unit);
            if (i.there && i.id == ident && i.profile == number) out[(*count)++] = (nvmlGpuInstance_t)&library.units[unit];
        }
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *out) {
    CAPABLE(device, out);
    for (uint32_t unit = gpu->first_unit; unit < gpu->first_unit + SIMGPU_MIG_UNITS; unit++) {
        mig_instance i = mig_read(&library.m, unit);
        if (!i.there || i.id != id) continue;
        *out = (nvmlGpuInstance_t)&library.units[unit];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

static nvmlDevice_t parent_of(uint32_t unit) {
    uint32_t parent = machine_gpu(&library.m, unit)->parent;
    for (uint32_t i = 0; i < library.m.visible_count; i++)
        if (library.m.visible[i] == parent) return &library.devices[i];
    return NULL;
}

SIM_API nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info) {
    uint32_t unit;
    mig_instance i;
    nvmlReturn_t result = find(handle, info, &unit, &i);
    if (result != NVML_SUCCESS) return result;
    const simgpu_mig_profile *profile = mig_profile(&library.m, unit, i);
    *info = (nvmlGpuInstanceInfo_t){.device = parent_of(unit), .id = i.id, .profileId = profile->id,
                                    .placement = {i.start, profile->size}};
    return NVML_SUCCESS;
}

/* The compute profile of a GPU instance is the one of all its slices: NVML's number is one less than the slices, with 4
 * for seven. nvidia-smi's id is the same. */
static unsigned int compute_profile(const simgpu_mig_profile *profile) { return profile->slices == 7 ? 4 : profile->slices - 1u; }

SIM_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned int profile,
                                                                  unsigned int engines, nvmlComputeInstanceProfileInfo_t *info) {
    uint32_t unit;
    mig_instance i;
    nvmlReturn_t result = find(handle, info, &unit, &i);
    if (result != NVML_SUCCESS) return result;
    const simgpu_mig_profile *p = mig_profile(&library.m, unit, i);
    if (engines != 0 || profile != compute_profile(p)) return NVML_ERROR_NOT_SUPPORTED;
    *info = (nvmlComputeInstanceProfileInfo_t){
        .id = profile, .sliceCount = p->slices, .instanceCount = 1, .multiprocessorCount = p->sms,
        .sharedCopyEngineCount = p->copy_engines, .sharedDecoderCount = p->decoders, .sharedEncoderCount = p->encoders,
        .sharedJpegCount = p->jpeg, .sharedOfaCount = p->ofa};
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle, unsigned int profile,
                                                                        unsigned int *count) {
    uint32_t unit;
    mig_instance i;
    nvmlReturn_t result = find(handle, count, &unit, &i);
    if (result != NVML_SUCCESS) return result;
    *count = !i.compute && profile == compute_profile(mig_profile(&library.m, unit, i));
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle, unsigned int profile,
                                                          nvmlComputeInstance_t *out) {
    uint32_t unit;
    mig_instance i;
    nvmlReturn_t result = find(handle, out, &unit, &i);
    if (result != NVML_SUCCESS) return result;
    if (profile != compute_profile(mig_profile(&library.m, unit, i))) return NVML_ERROR_INVALID_ARGUMENT;
    mig_result made = mig_create_compute(&library.m, unit);
    if (made == MIG_OK) *out = (nvmlComputeInstance_t)handle;
    return code_of(made);
}

static nvmlReturn_t find_compute(const void *handle, const void *out, uint32_t *unit, mig_instance *i) {
    nvmlReturn_t result = find(handle, out, unit, i);
    return result == NVML_SUCCESS && !i->compute ? NVML_ERROR_NOT_FOUND : result;
}

SIM_API nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle) {
    uint32_t unit;
    mig_instance i;
    nvmlReturn_t result = find_compute(handle, handle, &unit, &i);
    return result == NVML_SUCCESS ? code_of(mig_destroy_compute(&library.m, unit)) : result;
}

SIM_API nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned int profile,
                                                        nvmlComputeInstance_t *out, unsigned int *count) {
    uint32_t unit;
    mig_instance i;
    nvmlReturn_t result = find(handle, count, &unit, &i);
    if (result != NVML_SUCCESS) return result;
    *count = i.compute && profile == compute_profile(mig_profile(&library.m, unit, i));
    if (*count > 0 && out != NULL) out[0] = (nvmlComputeInstance_t)handle;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned int id,
                                                           nvmlComputeInstance_t *out) {
    uint32_t unit;
    mig_instance i;
    nvmlReturn_t result = find_compute(handle, out, &unit, &i);
    if (result != NVML_SUCCESS) return result;
    if (id != 0) return NVML_ERROR_NOT_FOUND;
    *out = (nvmlComputeInstance_t)handle;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info) {
    uint32_t unit;
    mig_instance i;
    nvmlReturn_t result = find_compute(handle, info, &unit, &i);
    if (result != NVML_SUCCESS) return result;
    const simgpu_mig_profile *profile = mig_profile(&library.m, unit, i);
    *info = (nvmlComputeInstanceInfo_t){.device = parent_of(unit), .gpuInstance = (nvmlGpuInstance_t)handle, .id = 0,
                                        .profileId = compute_profile(profile), .placement = {0, profile->slices}};
    return NVML_SUCCESS;
}
