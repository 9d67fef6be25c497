/* ECC and the errors that it found. A simulated GPU has none. */
#include "nvml/device.h"

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, current, &gpu));
    if (pending == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *current = *pending = gpu->ecc;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                         unsigned long long *count)
{
    struct simgpu_gpu *gpu;
    (void)type, (void)counter;
    TRY(device_find(device, count, &gpu));
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                             nvmlEccCounterType_t counter, nvmlMemoryLocation_t location,
                                             unsigned long long *count)
{
    (void)location;
    return nvmlDeviceGetTotalEccErrors(device, type, counter, count);
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count,
                                       unsigned long long *addresses)
{
    struct simgpu_gpu *gpu;
    (void)cause, (void)addresses;
    TRY(device_find(device, count, &gpu));
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable, unsigned int *uncorrectable,
                                       unsigned int *pending, unsigned int *failed)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, correctable, &gpu));
    if (gpu->compute_major < 8)
        return NVML_ERROR_NOT_SUPPORTED;
    if (uncorrectable == NULL || pending == NULL || failed == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *correctable = *uncorrectable = *pending = *failed = 0;
    return NVML_SUCCESS;
}
