/* How the GPUs are connected to each other and to the processors. */
#include "nvml/bus.h"
#include "nvml/device.h"

#include <string.h>
#include <unistd.h>

enum { P2P_WRITE = 1, P2P_OK = 0, P2P_NOT_SUPPORTED = 5, BITS = 64 };

static nvmlReturn_t find_pair(nvmlDevice_t one, nvmlDevice_t other, const void *out, struct simgpu_gpu *gpus[2])
{
    TRY(device_find(one, out, &gpus[0]));
    return device_find(other, out, &gpus[1]);
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other, nvmlGpuTopologyLevel_t *level)
{
    struct simgpu_gpu *gpus[2];
    TRY(find_pair(device, other, level, gpus));
    *level = NVML_TOPOLOGY_SYSTEM;
    if (gpus[0] == gpus[1])
        *level = NVML_TOPOLOGY_INTERNAL;
    else if (gpus[0]->numa == gpus[1]->numa)
        *level = NVML_TOPOLOGY_NODE;
    return NVML_SUCCESS;
}

/* Read and write work; NVLink, atomics and the rest do not. */
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other, nvmlGpuP2PCapsIndex_t capability,
                                    nvmlGpuP2PStatus_t *status)
{
    struct simgpu_gpu *gpus[2];
    TRY(find_pair(device, other, status, gpus));
    *status = capability <= P2P_WRITE ? P2P_OK : P2P_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device, nvmlDevice_t other, int *same)
{
    struct simgpu_gpu *gpus[2];
    TRY(find_pair(device, other, same, gpus));
    *same = gpus[0] == gpus[1];
    return NVML_SUCCESS;
}

DEVICE_VALUE(nvmlDeviceGetNumaNodeId, unsigned int, gpu->numa)

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *nodes,
                                         nvmlAffinityScope_t scope)
{
    struct simgpu_gpu *gpu;
    (void)scope;
    TRY(device_find(device, nodes, &gpu));
    if (words == 0 || gpu->numa < 0 || (unsigned int)gpu->numa >= words * BITS)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(nodes, 0, words * sizeof *nodes);
    nodes[gpu->numa / BITS] = 1ul << gpu->numa % BITS;
    return NVML_SUCCESS;
}

/* Every processor of this machine, since a simulated GPU is close to all of them. */
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *cpus)
{
    struct simgpu_gpu *gpu;
    TRY(device_find(device, cpus, &gpu));
    if (words == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(cpus, 0, words * sizeof *cpus);
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    for (long cpu = 0; cpu < count && cpu < (long)words * BITS; cpu++)
        cpus[cpu / BITS] |= 1ul << cpu % BITS;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words, unsigned long *cpus,
                                                 nvmlAffinityScope_t scope)
{
    (void)scope;
    return nvmlDeviceGetCpuAffinity(device, words, cpus);
}

/* NVLink: GPUs on one switch, or linked directly by bridges. */

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
