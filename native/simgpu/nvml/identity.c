/* What a GPU is: its names, numbers and place. */
#include <stdio.h>
#include <string.h>

#include "library.h"

#define TEXT(function, value)                                                                   \
    SIM_API nvmlReturn_t function(nvmlDevice_t device, char *text, unsigned int length) {       \
        FOR_DEVICE(device, text);                                                               \
        return copy_text(text, length, value);                                                  \
    }

#define NUMBER(function, type, expression)                        \
    SIM_API nvmlReturn_t function(nvmlDevice_t device, type *out) { \
        FOR_DEVICE(device, out);                                  \
        *out = (type)(expression);                                \
        return NVML_SUCCESS;                                      \
    }

TEXT(nvmlDeviceGetName, gpu->name)
TEXT(nvmlDeviceGetUUID, gpu->uuid)
TEXT(nvmlDeviceGetSerial, gpu->serial)
TEXT(nvmlDeviceGetVbiosVersion, "88.00.43.00.03")
TEXT(nvmlDeviceGetBoardPartNumber, "900-2G500-0000-000")

NUMBER(nvmlDeviceGetIndex, unsigned int, device->index)
NUMBER(nvmlDeviceGetMinorNumber, unsigned int, gpu->index)
NUMBER(nvmlDeviceGetBrand, unsigned int, gpu->brand)
NUMBER(nvmlDeviceGetArchitecture, unsigned int, gpu->architecture)
NUMBER(nvmlDeviceGetNumGpuCores, unsigned int, gpu->cuda_cores)
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned int, gpu->bus_width)
NUMBER(nvmlDeviceGetBoardId, unsigned int, gpu->pci_bus << 8)
NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, gpu->pcie_generation)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, gpu->pcie_generation)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, gpu->pcie_generation)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned int, 0)

SIM_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    FOR_DEVICE(device, major);
    if (minor == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *major = (int)gpu->compute_major;
    *minor = (int)gpu->compute_minor;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    FOR_DEVICE(device, pci);
    memset(pci, 0, sizeof *pci);
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_slot;
    pci->pciDeviceId = gpu->pci_device;
    pci->pciSubSystemId = gpu->pci_subsystem;
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", gpu->pci_domain & 0xFFFF, gpu->pci_bus & 0xFF,
             gpu->pci_slot & 0xFF);
    snprintf(pci->busId, sizeof pci->busId, "%s", gpu->bus_id);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

SIM_API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

SIM_API nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci) {
    FOR_DEVICE(device, pci);
    if (pci->version != NVML_STRUCT_VERSION(nvmlPciInfoExt_t, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_slot;
    pci->pciDeviceId = gpu->pci_device;
    pci->pciSubSystemId = gpu->pci_subsystem;
    pci->baseClass = 3;
    pci->subClass = 2;
    snprintf(pci->busId, sizeof pci->busId, "%s", gpu->bus_id);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes) {
    FOR_DEVICE(device, attributes);
    mig_instance i = mig_read(&library.m, device->gpu);
    if (!i.there) return NVML_ERROR_NOT_SUPPORTED; /* a question about MIG devices */
    const simgpu_mig_profile *profile = mig_profile(&library.m, device->gpu, i);
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = profile->sms, .sharedCopyEngineCount = profile->copy_engines,
        .sharedDecoderCount = profile->decoders, .sharedEncoderCount = profile->encoders,
        .sharedJpegCount = profile->jpeg, .sharedOfaCount = profile->ofa, .gpuInstanceSliceCount = profile->slices,
        .computeInstanceSliceCount = profile->slices, .memorySizeMB = profile->memory_mib};
    return NVML_SUCCESS;
}
