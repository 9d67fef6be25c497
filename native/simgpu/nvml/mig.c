/* MIG: the mode is off on every simulated GPU, and there are no MIG devices. */
#include "library.h"

SIM_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    FOR_DEVICE(device, current);
    if (pending == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (!gpu->mig_capable) return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = 0;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
    FOR_DEVICE(device, is_mig);
    *is_mig = 0;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    FOR_DEVICE(device, count);
    *count = gpu->mig_capable ? 7 : 0;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *out) {
    FOR_DEVICE(device, out);
    (void)index;
    return gpu->mig_capable ? NVML_ERROR_NOT_FOUND : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t only_for_mig(nvmlDevice_t device, void *out) {
    FOR_DEVICE(device, out);
    return NVML_ERROR_NOT_SUPPORTED;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id) { return only_for_mig(device, id); }

SIM_API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id) {
    return only_for_mig(device, id);
}

SIM_API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *out) {
    return only_for_mig(device, out);
}
