/* Where the GPUs are in relation to each other and to the processors. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

SIM_API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other, int *level) {
    FOR_DEVICE(device, level);
    simgpu_gpu *second;
    nvmlReturn_t result = handle_check(other, &second);
    if (result != NVML_SUCCESS) return result;
    *level = gpu == second ? NVML_TOPOLOGY_INTERNAL : gpu->numa == second->numa ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other, int capability, int *status) {
    FOR_DEVICE(device, status);
    simgpu_gpu *second;
    nvmlReturn_t result = handle_check(other, &second);
    if (result != NVML_SUCCESS) return result;
    *status = capability <= 1 ? 0 : 5; /* read and write work; NVLink, atomics and the rest do not */
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device, nvmlDevice_t other, int *same) {
    FOR_DEVICE(device, same);
    simgpu_gpu *second;
    nvmlReturn_t result = handle_check(other, &second);
    if (result == NVML_SUCCESS) *same = gpu == second;
    return result;
}

SIM_API nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node) {
    FOR_DEVICE(device, node);
    *node = (unsigned int)gpu->numa;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *nodes, int scope) {
    FOR_DEVICE(device, nodes);
    (void)scope;
    if (words == 0 || gpu->numa < 0 || (unsigned int)gpu->numa >= words * 64) return NVML_ERROR_INVALID_ARGUMENT;
    memset(nodes, 0, words * sizeof *nodes);
    nodes[gpu->numa / 64] = 1ul << gpu->numa % 64;
    return NVML_SUCCESS;
}

/* Every processor of this machine, since a simulated GPU is near to all of them. */
SIM_API nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *cpus) {
    FOR_DEVICE(device, cpus);
    if (words == 0) return NVML_ERROR_INVALID_ARGUMENT;
    memset(cpus, 0, words * sizeof *cpus);
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    for (long cpu = 0; cpu < count && cpu < (long)words * 64; cpu++) cpus[cpu / 64] |= 1ul << cpu % 64;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words, unsigned long *cpus,
                                                         int scope) {
    (void)scope;
    return nvmlDeviceGetCpuAffinity(device, words, cpus);
}

/* The GPU at the other end of a link: those of one bridge take turns. NULL for a switch. */
static simgpu_gpu *peer(const simgpu_gpu *gpu, unsigned int link) {
    simgpu_gpu *peers[SIMGPU_MAX_GPUS];
    unsigned int count = 0;
    for (uint32_t number = 0; gpu->bridge && number < library.m.head->gpu_count; number++) {
        simgpu_gpu *other = machine_gpu(&library.m, number);
        if (other != gpu && other->bridge == gpu->bridge) peers[count++] = other;
    }
    return count ? peers[link % count] : NULL;
}

SIM_API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, int *active) {
    FOR_DEVICE(device, active);
    if (link >= NVML_NVLINK_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->nvlinks == 0) return NVML_ERROR_NOT_SUPPORTED;
    *active = link < gpu->nvlinks && (!gpu->bridge || peer(gpu, link));
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, int *type) {
    FOR_DEVICE(device, type);
    if (link >= NVML_NVLINK_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    if (link >= gpu->nvlinks) return NVML_ERROR_NOT_SUPPORTED;
    *type = gpu->bridge ? NVML_NVLINK_DEVICE_TYPE_GPU : NVML_NVLINK_DEVICE_TYPE_SWITCH;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci) {
    FOR_DEVICE(device, pci);
    if (link >= NVML_NVLINK_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    const simgpu_gpu *other = link < gpu->nvlinks ? peer(gpu, link) : NULL;
    if (other == NULL) return NVML_ERROR_NOT_SUPPORTED;
    memset(pci, 0, sizeof *pci);
    pci->domain = other->pci_domain;
    pci->bus = other->pci_bus;
    pci->device = other->pci_slot;
    snprintf(pci->busId, sizeof pci->busId, "%s", other->bus_id);
    return NVML_SUCCESS;
}
