#include "nvml/device.h"

#include "core/mig.h"

#include <stdatomic.h>
#include <stdlib.h>

static nvmlReturn_t check_output(const struct simgpu_gpu *gpu, const void *out)
{
    if (atomic_load(&gpu->lost))
        return NVML_ERROR_GPU_IS_LOST;
    return out != NULL ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t device_find_gpu(nvmlDevice_t device, const void *out, struct simgpu_gpu **gpu)
{
    TRY(library_check_ready());
    if (device < library.devices || device >= library.devices + library.m.visible_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *gpu = machine_gpu(&library.m, device->gpu);
    return check_output(*gpu, out);
}

nvmlReturn_t device_find(nvmlDevice_t device, const void *out, struct simgpu_gpu **gpu)
{
    TRY(library_check_ready());
    if (device < library.units || device >= library.units + library.m.head->unit_count)
        return device_find_gpu(device, out, gpu);
    if (!mig_is_visible(&library.m, device->gpu))
        return NVML_ERROR_INVALID_ARGUMENT;
    *gpu = machine_gpu(&library.m, device->gpu);
    return check_output(machine_gpu(&library.m, (*gpu)->parent), out);
}

nvmlReturn_t device_find_to_change(nvmlDevice_t device, struct simgpu_gpu **gpu)
{
    TRY(device_find_gpu(device, device, gpu));
    return getenv("NVIDIA_VISIBLE_DEVICES") == NULL ? NVML_SUCCESS : NVML_ERROR_NO_PERMISSION;
}

nvmlDevice_t device_handle(uint32_t gpu)
{
    for (uint32_t i = 0; i < library.m.visible_count; i++)
        if (library.m.visible[i] == gpu)
            return &library.devices[i];
    return NULL;
}
