#include "nvml/bus.h"

#include "nvml/device.h"

#include <stdio.h>

void bus_fill_address(const struct simgpu_gpu *gpu, nvmlPciInfo_t *pci)
{
    *pci = (nvmlPciInfo_t){.domain = gpu->pci_domain, .bus = gpu->pci_bus, .device = gpu->pci_slot};
    snprintf(pci->busId, sizeof pci->busId, "%s", gpu->bus_id);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, pci, &gpu));
    bus_fill_address(gpu, pci);
    pci->pciDeviceId = gpu->pci_device;
    pci->pciSubSystemId = gpu->pci_subsystem;
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", gpu->pci_domain & 0xFFFF,
             gpu->pci_bus & 0xFF, gpu->pci_slot & 0xFF);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
    enum { DISPLAY_CONTROLLER = 3, CONTROLLER_3D = 2 };
    struct simgpu_gpu *gpu;
    TRY(device_find(device, pci, &gpu));
    if (pci->version != NVML_STRUCT_VERSION(nvmlPciInfoExt_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_slot;
    pci->pciDeviceId = gpu->pci_device;
    pci->pciSubSystemId = gpu->pci_subsystem;
    pci->baseClass = DISPLAY_CONTROLLER;
    pci->subClass = CONTROLLER_3D;
    snprintf(pci->busId, sizeof pci->busId, "%s", gpu->bus_id);
    return NVML_SUCCESS;
}

DEVICE_VALUE(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, gpu->pcie_generation)
DEVICE_VALUE(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, gpu->pcie_generation)
DEVICE_VALUE(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, gpu->pcie_generation)
DEVICE_VALUE(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
DEVICE_VALUE(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, 16)
DEVICE_VALUE(nvmlDeviceGetPcieReplayCounter, unsigned int, 0)

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                         unsigned int *kib_per_second)
{
    struct simgpu_gpu *gpu;
    (void)counter;
    TRY(device_find(device, kib_per_second, &gpu));
    *kib_per_second = 0;
    return NVML_SUCCESS;
}
