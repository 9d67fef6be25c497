/* The length of turns on a GPU. NVML has no call for it: NVIDIA's nvidia-smi asks the driver past NVML, and ours asks
 * the simulated driver by these two. A container may look and not change it, as on a machine where that takes root. */
#include <stdlib.h>

#include "library.h"

SIM_API nvmlReturn_t simgpuDeviceGetTimeSlice(nvmlDevice_t device, unsigned int *slice) {
    FOR_GPU(device, slice);
    *slice = timeline_slice(&library.m, device->gpu);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t simgpuDeviceSetTimeSlice(nvmlDevice_t device, unsigned int slice) {
    FOR_GPU(device, device);
    if (getenv("NVIDIA_VISIBLE_DEVICES") != NULL) return NVML_ERROR_NO_PERMISSION;
    return timeline_set_slice(&library.m, device->gpu, slice) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
