/* The length of turns on a GPU. NVML has no call for it: NVIDIA's nvidia-smi queries the driver without NVML, and ours
 * queries the simulated driver by these two. */
#include "core/timeline.h"
#include "nvml/device.h"

nvmlReturn_t simgpuDeviceGetTimeSlice(nvmlDevice_t device, unsigned int *slice)
{
    struct simgpu_gpu *gpu;
    TRY(device_find_gpu(device, slice, &gpu));
    *slice = timeline_slice(&library.m, device->gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t simgpuDeviceSetTimeSlice(nvmlDevice_t device, unsigned int slice)
{
    struct simgpu_gpu *gpu;
    TRY(device_find_to_change(device, &gpu));
    return timeline_set_slice(&library.m, device->gpu, slice) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
