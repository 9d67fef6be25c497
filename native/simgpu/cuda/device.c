/* Devices: how many, which, and the questions that have one plain answer. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static CUresult find(int ordinal, device **dev) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    *dev = driver_device(ordinal);
    return *dev != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SIM_API CUresult cuDeviceGetCount(int *count) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
    *count = driver.count;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGet(CUdevice *out, int ordinal) {
    device *dev;
    CUresult result = find(ordinal, &dev);
    if (result != CUDA_SUCCESS) return result;
    if (out == NULL) return CUDA_ERROR_INVALID_VALUE;
    *out = ordinal;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetName(char *name, int length, CUdevice ordinal) {
    device *dev;
    CUresult result = find(ordinal, &dev);
    if (result != CUDA_SUCCESS) return result;
    if (name == NULL || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "%s", device_record(dev)->name);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice ordinal) {
    device *dev;
    CUresult result = find(ordinal, &dev);
    if (result != CUDA_SUCCESS) return result;
    if (uuid == NULL) return CUDA_ERROR_INVALID_VALUE;
    const char *text = device_record(dev)->uuid + strlen("GPU-");
    for (int i = 0; i < 16; i++) {
        text += *text == '-';
        unsigned int byte = 0;
        sscanf(text, "%2x", &byte);
        uuid->bytes[i] = (char)byte;
        text += 2;
    }
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice ordinal) {
    device *dev;
    CUresult result = find(ordinal, &dev);
    if (result != CUDA_SUCCESS) return result;
    if (bytes == NULL) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device_record(dev)->memory_mib * MIB;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice ordinal) {
    device *dev;
    CUresult result = find(ordinal, &dev);
    if (result != CUDA_SUCCESS) return result;
    if (major == NULL || minor == NULL) return CUDA_ERROR_INVALID_VALUE;
    *major = (int)device_record(dev)->compute_major;
    *minor = (int)device_record(dev)->compute_minor;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice ordinal) {
    device *dev;
    CUresult result = find(ordinal, &dev);
    if (result != CUDA_SUCCESS) return result;
    if (text == NULL || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    simgpu_gpu *gpu = device_record(dev);
    snprintf(text, (size_t)length, "%04X:%02X:%02X.0", gpu->pci_domain, gpu->pci_bus, gpu->pci_slot);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *text) {
    unsigned int domain = 0, bus, slot;
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL || text == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(text, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
    }
    for (int i = 0; i < driver.count; i++) {
        simgpu_gpu *gpu = device_record(&driver.devices[i]);
        if (gpu->pci_domain != domain || gpu->pci_bus != bus || gpu->pci_slot != slot) continue;
        *out = i;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

SIM_API CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice ordinal) {
    (void)luid, (void)mask, (void)ordinal;
    return CUDA_ERROR_NOT_SUPPORTED; /* a matter of Windows */
}

SIM_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice from, CUdevice to) {
    device *dev;
    CUresult result = find(from, &dev);
    if (result == CUDA_SUCCESS) result = find(to, &dev);
    if (result == CUDA_SUCCESS) *can = from != to;
    return result;
}

SIM_API CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
    device *dev;
    CUresult result = find(from, &dev);
    if (result == CUDA_SUCCESS) result = find(to, &dev);
    if (result != CUDA_SUCCESS) return result;
    if (from == to || value == NULL) return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == 2; /* access works, native atomics do not */
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice ordinal) {
    device *dev;
    CUresult result = find(ordinal, &dev);
    (void)type;
    if (result == CUDA_SUCCESS) *supported = 0;
    return result;
}

SIM_API CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format, unsigned int channels,
                                                    CUdevice ordinal) {
    device *dev;
    CUresult result = find(ordinal, &dev);
    (void)format, (void)channels;
    if (result == CUDA_SUCCESS) *width = 1u << 28;
    return result;
}
