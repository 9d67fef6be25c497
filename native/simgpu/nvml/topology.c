/* Where the GPUs are in relation to each other and to the processors. */
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

SIM_API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, int *active) {
    FOR_DEVICE(device, active);
    (void)link;
    return NVML_ERROR_NOT_SUPPORTED;
}
