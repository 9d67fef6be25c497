/* Devices: how many, which ones, and queries with one simple answer. */

#include "core/pci.h"
#include "cuda/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUresult cuDeviceGetCount(int *count)
{
    TRY(driver_check_ready());
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = driver.count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice ordinal)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (name == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "%s", device_record(dev)->name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice ordinal)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (uuid == NULL)
        return CUDA_ERROR_INVALID_VALUE;
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

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice ordinal)
{
    return cuDeviceGetUuid(uuid, ordinal);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice ordinal)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = device_record(dev)->memory_mib * MIB;
    return CUDA_SUCCESS;
}

/* The form from before GPUs had more than 4 GiB. */
CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice ordinal)
{
    size_t all;
    TRY(cuDeviceTotalMem_v2(&all, ordinal));
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = all > UINT32_MAX ? UINT32_MAX : (unsigned int)all;
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice ordinal)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (major == NULL || minor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *major = (int)device_record(dev)->compute_major;
    *minor = (int)device_record(dev)->compute_minor;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice ordinal)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (text == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct simgpu_gpu *gpu = device_record(dev);
    snprintf(text, (size_t)length, "%04X:%02X:%02X.0", gpu->pci_domain, gpu->pci_bus, gpu->pci_slot);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *text)
{
    struct pci_address address;
    TRY(driver_check_ready());
    if (out == NULL || text == NULL || !pci_read_address(text, &address))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < driver.count; i++)
        if (pci_is_at(device_record(&driver.devices[i]), address)) {
            *out = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice ordinal)
{
    (void)luid, (void)mask, (void)ordinal;
    return CUDA_ERROR_NOT_SUPPORTED; /* only on Windows */
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice from, CUdevice to)
{
    struct device *dev;
    TRY(device_find(from, &dev));
    TRY(device_find(to, &dev));
    *can = from != to;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
    struct device *dev;
    TRY(device_find(from, &dev));
    TRY(device_find(to, &dev));
    if (from == to || value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == 2; /* access works, native atomics do not */
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice ordinal)
{
    struct device *dev;
    (void)type;
    TRY(device_find(ordinal, &dev));
    *supported = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format, unsigned int channels,
                                            CUdevice ordinal)
{
    struct device *dev;
    (void)format, (void)channels;
    TRY(device_find(ordinal, &dev));
    *width = 1u << 28;
    return CUDA_SUCCESS;
}
