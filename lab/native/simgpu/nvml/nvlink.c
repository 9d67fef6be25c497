/* NVLink: GPUs on one switch, or linked directly by bridges. */
#include "nvml/bus.h"
#include "nvml/device.h"

static nvmlReturn_t find_link(nvmlDevice_t device, unsigned int link, const void *out, struct simgpu_gpu **gpu)
{
    TRY(device_find(device, out, gpu));
    return link < NVML_NVLINK_MAX_LINKS ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* The GPU at the other end of a link: those of one bridge take turns. NULL for a switch. */
static const struct simgpu_gpu *find_peer(const struct simgpu_gpu *gpu, unsigned int link)
{
    const struct simgpu_gpu *peers[SIMGPU_MAX_GPUS];
    unsigned int count = 0;
    for (uint32_t number = 0; gpu->bridge && number < library.m.head->gpu_count; number++) {
        const struct simgpu_gpu *other = machine_gpu(&library.m, number);
        if (other != gpu && other->bridge == gpu->bridge)
            peers[count++] = other;
    }
    return count ? peers[link % count] : NULL;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active)
{
    struct simgpu_gpu *gpu;
    TRY(find_link(device, link, active, &gpu));
    if (gpu->nvlinks == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *active = link < gpu->nvlinks && (!gpu->bridge || find_peer(gpu, link));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                 nvmlIntNvLinkDeviceType_t *type)
{
    struct simgpu_gpu *gpu;
    TRY(find_link(device, link, type, &gpu));
    if (link >= gpu->nvlinks)
        return NVML_ERROR_NOT_SUPPORTED;
    *type = gpu->bridge ? NVML_NVLINK_DEVICE_TYPE_GPU : NVML_NVLINK_DEVICE_TYPE_SWITCH;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    struct simgpu_gpu *gpu;
    TRY(find_link(device, link, pci, &gpu));
    const struct simgpu_gpu *peer = link < gpu->nvlinks ? find_peer(gpu, link) : NULL;
    if (peer == NULL)
        return NVML_ERROR_NOT_SUPPORTED;
    bus_fill_address(peer, pci);
    return NVML_SUCCESS;
}
