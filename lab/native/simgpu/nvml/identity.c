/* What a GPU is: its names and numbers. */
#include "core/mig.h"
#include "nvml/device.h"

#define DEVICE_TEXT(function, value)                                                                                   \
    nvmlReturn_t function(nvmlDevice_t device, char *text, unsigned int length)                                        \
    {                                                                                                                  \
        struct simgpu_gpu *gpu;                                                                                        \
        TRY(device_find(device, text, &gpu));                                                                          \
        return library_copy_text(text, length, value);                                                                 \
    }

DEVICE_TEXT(nvmlDeviceGetName, gpu->name)
DEVICE_TEXT(nvmlDeviceGetUUID, gpu->uuid)
DEVICE_TEXT(nvmlDeviceGetSerial, gpu->serial)
DEVICE_TEXT(nvmlDeviceGetVbiosVersion, "88.00.43.00.03")
DEVICE_TEXT(nvmlDeviceGetBoardPartNumber, "900-2G500-0000-000")

DEVICE_VALUE(nvmlDeviceGetIndex, unsigned int, device->index)
DEVICE_VALUE(nvmlDeviceGetMinorNumber, unsigned int, gpu->index)
DEVICE_VALUE(nvmlDeviceGetBrand, nvmlBrandType_t, gpu->brand)
DEVICE_VALUE(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, gpu->architecture)
DEVICE_VALUE(nvmlDeviceGetNumGpuCores, unsigned int, gpu->cuda_cores)
DEVICE_VALUE(nvmlDeviceGetMemoryBusWidth, unsigned int, gpu->bus_width)
DEVICE_VALUE(nvmlDeviceGetBoardId, unsigned int, gpu->pci_bus << 8)
DEVICE_VALUE(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, major, &gpu));
    if (minor == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *major = (int)gpu->compute_major;
    *minor = (int)gpu->compute_minor;
    return NVML_SUCCESS;
}

/* Of a MIG device; whole GPUs have none. */
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, attributes, &gpu));
    struct mig_instance instance = mig_read_instance(&library.m, device->gpu);
    if (!instance.exists)
        return NVML_ERROR_NOT_SUPPORTED;
    const struct simgpu_mig_profile *profile = mig_profile_of(&library.m, device->gpu, instance);
    *attributes = (nvmlDeviceAttributes_t){.multiprocessorCount = profile->sms,
                                           .sharedCopyEngineCount = profile->copy_engines,
                                           .sharedDecoderCount = profile->decoders,
                                           .sharedEncoderCount = profile->encoders,
                                           .sharedJpegCount = profile->jpeg,
                                           .sharedOfaCount = profile->ofa,
                                           .gpuInstanceSliceCount = profile->slices,
                                           .computeInstanceSliceCount = profile->slices,
                                           .memorySizeMB = profile->memory_mib};
    return NVML_SUCCESS;
}
