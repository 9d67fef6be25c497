/* Field values: none is supported, and each one says so. */
#include "nvml/device.h"

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, values, &gpu));
    for (int i = 0; i < count; i++)
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
