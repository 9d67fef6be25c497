/* Which processes hold memory of a GPU. A process may own more than one slot; it is listed once. */
#include "lane.h"
#include "library.h"

typedef struct {
    unsigned int pid;
    unsigned long long bytes;
    unsigned int instance;
} holder;

/* Adds those of one unit: the clients of MPS, or the others. */
static unsigned int list_unit(uint32_t number, unsigned int instance, bool clients, holder *holders,
                              unsigned int first) {
    unsigned int count = first;
    for (uint32_t slot = 0; slot < machine_slots_used(&library.m); slot++) {
        simgpu_cell *cell = machine_cell(&library.m, number, slot);
        uint32_t pid = slots_pid(&library.m, slot), held = ledger_held(&library.m, number, slot);
        if (pid == 0 || (held == 0 && __atomic_load_n(&cell->contexts, __ATOMIC_SEQ_CST) == 0)) continue;
        if (slots_dead(&library.m, slot) || lane_of(&library.m, number, slot) != clients) continue;
        unsigned int at = first;
        while (at < count && holders[at].pid != pid) at++;
        if (at == SIMGPU_SLOTS) continue;
        if (at == count) holders[count++] = (holder){.pid = pid, .instance = instance};
        holders[at].bytes += held * MIB;
    }
    return count;
}

/* Of a GPU with those of its instances. */
static unsigned int list_holders(uint32_t number, bool clients, holder *holders) {
    slots_sweep(&library.m, MEMORY_PAUSE_NS);
    mig_instance own = mig_read(&library.m, number);
    unsigned int count = list_unit(number, own.there ? own.id : NVML_NO_INSTANCE, clients, holders, 0);
    for (uint32_t unit = library.m.head->gpu_count; unit < library.m.head->unit_count; unit++)
        if (mig_visible(&library.m, unit) && machine_gpu(&library.m, unit)->parent == number)
            count = list_unit(unit, mig_read(&library.m, unit).id, clients, holders, count);
    return count;
}

/* A GPU instance has one compute instance, 0. */
static unsigned int compute_of(holder h) { return h.instance == NVML_NO_INSTANCE ? NVML_NO_INSTANCE : 0; }

/* Says how many there are; INSUFFICIENT_SIZE when there is not room for all of them. */
static nvmlReturn_t settle_count(unsigned int count, unsigned int *room, const void *out) {
    unsigned int given = *room;
    *room = count;
    if (count == 0) return NVML_SUCCESS;
    if (given < count) return NVML_ERROR_INSUFFICIENT_SIZE;
    return out != NULL ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t list_v1(nvmlDevice_t device, bool clients, unsigned int *count, nvmlProcessInfo_v1_t *out) {
    FOR_DEVICE(device, count);
    holder holders[SIMGPU_SLOTS];
    unsigned int found = list_holders(device->gpu, clients, holders);
    nvmlReturn_t result = settle_count(found, count, out);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < found; i++)
        out[i] = (nvmlProcessInfo_v1_t){.pid = holders[i].pid, .usedGpuMemory = holders[i].bytes};
    return result;
}

static nvmlReturn_t list_v3(nvmlDevice_t device, bool clients, unsigned int *count, nvmlProcessInfo_t *out) {
    FOR_DEVICE(device, count);
    holder holders[SIMGPU_SLOTS];
    unsigned int found = list_holders(device->gpu, clients, holders);
    nvmlReturn_t result = settle_count(found, count, out);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < found; i++)
        out[i] = (nvmlProcessInfo_t){.pid = holders[i].pid, .usedGpuMemory = holders[i].bytes,
                                     .gpuInstanceId = holders[i].instance, .computeInstanceId = compute_of(holders[i])};
    return result;
}

#define LISTED(function, clients)                                                                                \
    SIM_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *out) {         \
        return list_v1(device, clients, count, out);                                                             \
    }                                                                                                            \
    SIM_API nvmlReturn_t function##_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *out) {       \
        return list_v3(device, clients, count, out);                                                             \
    }                                                                                                            \
    SIM_API nvmlReturn_t function##_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *out) {       \
        return list_v3(device, clients, count, out);                                                             \
    }

LISTED(nvmlDeviceGetComputeRunningProcesses, false)
LISTED(nvmlDeviceGetMPSComputeRunningProcesses, true)

SIM_API nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *list) {
    FOR_DEVICE(device, list);
    if (list->version != NVML_STRUCT_VERSION(nvmlProcessDetailList_t, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    holder holders[SIMGPU_SLOTS];
    unsigned int found = list->mode != 1 ? list_holders(device->gpu, list->mode == 2, holders) : 0;
    nvmlReturn_t result = settle_count(found, &list->numProcArrayEntries, list->procArray);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < found; i++)
        list->procArray[i] = (nvmlProcessDetail_t){.pid = holders[i].pid, .usedGpuMemory = holders[i].bytes,
                                                   .gpuInstanceId = holders[i].instance,
                                                   .computeInstanceId = compute_of(holders[i])};
    return result;
}

/* No graphics on these machines. */
#define NOBODY(function)                                                                          \
    SIM_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, void *out) {          \
        FOR_DEVICE(device, count);                                                                \
        (void)out;                                                                                \
        *count = 0;                                                                               \
        return NVML_SUCCESS;                                                                      \
    }

NOBODY(nvmlDeviceGetGraphicsRunningProcesses)
NOBODY(nvmlDeviceGetGraphicsRunningProcesses_v2)
NOBODY(nvmlDeviceGetGraphicsRunningProcesses_v3)
