/* Modes and counters. None but the compute mode can be changed here: that takes root on a real machine. */
#include <stdlib.h>

#include "library.h"

#define SETTING(function, value)                                          \
    SIM_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *out) { \
        FOR_DEVICE(device, out);                                          \
        *out = (value);                                                   \
        return NVML_SUCCESS;                                              \
    }

#define REFUSED(function)                                                   \
    SIM_API nvmlReturn_t function(nvmlDevice_t device, unsigned int value) { \
        simgpu_gpu *gpu;                                                    \
        nvmlReturn_t result = handle_check(device, &gpu);                   \
        (void)value;                                                        \
        return result != NVML_SUCCESS ? result : NVML_ERROR_NO_PERMISSION;  \
    }

SETTING(nvmlDeviceGetPersistenceMode, gpu->persistence)
SETTING(nvmlDeviceGetDisplayMode, 0)
SETTING(nvmlDeviceGetDisplayActive, 0)
SETTING(nvmlDeviceGetAccountingMode, 0)
SETTING(nvmlDeviceGetVirtualizationMode, 0)
REFUSED(nvmlDeviceSetPersistenceMode)
REFUSED(nvmlDeviceSetEccMode)
REFUSED(nvmlDeviceSetPowerManagementLimit)

SIM_API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int *mode) {
    FOR_GPU(device, mode);
    *mode = __atomic_load_n(&gpu->compute_mode, __ATOMIC_SEQ_CST);
    return NVML_SUCCESS;
}

/* 1, exclusive thread, is of the past. A container may look and not change it, as where that takes root. */
SIM_API nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, unsigned int mode) {
    FOR_GPU(device, device);
    if (getenv("NVIDIA_VISIBLE_DEVICES") != NULL) return NVML_ERROR_NO_PERMISSION;
    if (mode > 3) return NVML_ERROR_INVALID_ARGUMENT;
    if (mode == 1) return NVML_ERROR_NOT_SUPPORTED;
    __atomic_store_n(&gpu->compute_mode, mode, __ATOMIC_SEQ_CST);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    FOR_DEVICE(device, current);
    if (pending == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *current = *pending = gpu->ecc;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter, unsigned long long *count) {
    FOR_DEVICE(device, count);
    (void)type, (void)counter;
    *count = 0;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, int type, int counter, int location,
                                                     unsigned long long *count) {
    (void)location;
    return nvmlDeviceGetTotalEccErrors(device, type, counter, count);
}

SIM_API nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, int cause, unsigned int *count,
                                               unsigned long long *addresses) {
    FOR_DEVICE(device, count);
    (void)cause, (void)addresses;
    *count = 0;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable, unsigned int *uncorrectable,
                                               unsigned int *pending, unsigned int *failed) {
    FOR_DEVICE(device, correctable);
    if (gpu->compute_major < 8) return NVML_ERROR_NOT_SUPPORTED;
    if (uncorrectable == NULL || pending == NULL || failed == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *correctable = *uncorrectable = *pending = *failed = 0;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, int api, unsigned int *restricted) {
    FOR_DEVICE(device, restricted);
    (void)api;
    *restricted = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

static nvmlReturn_t no_windows(nvmlDevice_t device) {
    simgpu_gpu *gpu;
    nvmlReturn_t result = handle_check(device, &gpu);
    return result != NVML_SUCCESS ? result : NVML_ERROR_NOT_SUPPORTED;
}

SIM_API nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, int *current, int *pending) {
    (void)current, (void)pending;
    return no_windows(device);
}

SIM_API nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, int *current, int *pending) {
    (void)current, (void)pending;
    return no_windows(device);
}
