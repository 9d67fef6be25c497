/* MIG devices: the mode, and what is asked of a device that may be one. */
#include "mig.h"

#include "library.h"

SIM_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    FOR_GPU(device, current);
    if (pending == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (!gpu->mig_capable) return NVML_ERROR_NOT_SUPPORTED;
    uint32_t mode = __atomic_load_n(&gpu->mig_mode, __ATOMIC_SEQ_CST);
    *current = mode & MIG_ON ? 1 : 0;
    *pending = mode & MIG_PENDING ? 1 : 0;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *status) {
    FOR_GPU(device, status);
    if (!gpu->mig_capable) return NVML_ERROR_NOT_SUPPORTED;
    if (mode > 1) return NVML_ERROR_INVALID_ARGUMENT;
    *status = mig_set_mode(&library.m, device->gpu, mode) == MIG_OK ? NVML_SUCCESS : NVML_ERROR_IN_USE;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
    FOR_DEVICE(device, is_mig);
    *is_mig = mig_read(&library.m, device->gpu).there;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    FOR_GPU(device, count);
    *count = gpu->mig_capable ? SIMGPU_MIG_UNITS : 0;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *out) {
    FOR_GPU(device, out);
    if (!gpu->mig_capable) return NVML_ERROR_NOT_SUPPORTED;
    for (uint32_t unit = gpu->first_unit; unit < gpu->first_unit + SIMGPU_MIG_UNITS; unit++) {
        if (!mig_visible(&library.m, unit) || index-- > 0) continue;
        *out = &library.units[unit];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

/* The unit of a MIG device; an error for a whole GPU. */
static nvmlReturn_t only_for_mig(nvmlDevice_t device, const void *out, mig_instance *instance) {
    FOR_DEVICE(device, out);
    *instance = mig_read(&library.m, device->gpu);
    return instance->there ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id) {
    mig_instance instance;
    nvmlReturn_t result = only_for_mig(device, id, &instance);
    if (result == NVML_SUCCESS) *id = instance.id;
    return result;
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id) {
    mig_instance instance;
    nvmlReturn_t result = only_for_mig(device, id, &instance);
    if (result == NVML_SUCCESS) *id = 0;
    return result;
}

SIM_API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *out) {
    mig_instance instance;
    nvmlReturn_t result = only_for_mig(device, out, &instance);
    for (uint32_t i = 0; result == NVML_SUCCESS && i < library.m.visible_count; i++)
        if (library.m.visible[i] == machine_gpu(&library.m, device->gpu)->parent) *out = &library.devices[i];
    return result;
}
