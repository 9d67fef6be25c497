/* Which processes hold memory of a GPU. A process may own more than one slot; it is listed once. */
#include "core/lane.h"
#include "core/ledger.h"
#include "core/mig.h"
#include "core/slots.h"
#include "nvml/device.h"

#include <stdatomic.h>

struct holder {
    unsigned int pid;
    unsigned long long bytes;
    unsigned int instance; /* NVML_NO_INSTANCE: on the whole GPU */
};

/* Clients of MPS are listed with the others, and apart. Whether the process is dead is checked last, because that reads
 * /proc. */
static bool is_listed(uint32_t unit, uint32_t slot, bool clients)
{
    bool holds =
        ledger_held(&library.m, unit, slot) > 0 || atomic_load(&machine_cell(&library.m, unit, slot)->contexts) > 0;
    return holds && slots_pid(&library.m, slot) != 0 && (!clients || lane_exists(&library.m, unit, slot)) &&
           !slots_is_dead(&library.m, slot);
}

/* Adds those of one unit to `first` others. Returns how many there are in all. */
static unsigned int list_unit(uint32_t unit, unsigned int instance, bool clients, struct holder *holders,
                              unsigned int first)
{
    unsigned int count = first;
    for (uint32_t slot = 0; slot < machine_slots_used(&library.m); slot++) {
        unsigned int at = first, pid = slots_pid(&library.m, slot);
        if (!is_listed(unit, slot, clients))
            continue;
        while (at < count && holders[at].pid != pid)
            at++;
        if (at == SIMGPU_SLOTS)
            continue;
        if (at == count)
            holders[count++] = (struct holder){.pid = pid, .instance = instance};
        holders[at].bytes += lane_held_mib(&library.m, unit, slot, 0) * MIB;
    }
    return count;
}

/* Of a GPU with those of its instances. */
static unsigned int list_holders(uint32_t gpu, bool clients, struct holder *holders)
{
    slots_sweep(&library.m, MEMORY_PAUSE_NS);
    struct mig_instance own = mig_read_instance(&library.m, gpu);
    unsigned int count = list_unit(gpu, own.exists ? own.id : NVML_NO_INSTANCE, clients, holders, 0);
    for (uint32_t unit = library.m.head->gpu_count; unit < library.m.head->unit_count; unit++)
        if (mig_is_visible(&library.m, unit) && machine_gpu(&library.m, unit)->parent == gpu)
            count = list_unit(unit, mig_read_instance(&library.m, unit).id, clients, holders, count);
    return count;
}

/* A GPU instance has one compute instance, 0. */
static unsigned int compute_instance_of(const struct holder *h)
{
    return h->instance == NVML_NO_INSTANCE ? NVML_NO_INSTANCE : 0;
}

/* Writes one process in the format of a call's list. */
typedef void (*writer)(void *out, unsigned int index, const struct holder *h);

static void write_v1(void *out, unsigned int index, const struct holder *h)
{
    ((nvmlProcessInfo_v1_t *)out)[index] = (nvmlProcessInfo_v1_t){.pid = h->pid, .usedGpuMemory = h->bytes};
}

static void write_v2(void *out, unsigned int index, const struct holder *h)
{
    ((nvmlProcessInfo_v2_t *)out)[index] = (nvmlProcessInfo_v2_t){.pid = h->pid,
                                                                  .usedGpuMemory = h->bytes,
                                                                  .gpuInstanceId = h->instance,
                                                                  .computeInstanceId = compute_instance_of(h)};
}

static void write_detail(void *out, unsigned int index, const struct holder *h)
{
    ((nvmlProcessDetail_v1_t *)out)[index] = (nvmlProcessDetail_v1_t){.pid = h->pid,
                                                                      .usedGpuMemory = h->bytes,
                                                                      .gpuInstanceId = h->instance,
                                                                      .computeInstanceId = compute_instance_of(h)};
}

/* As NVML does: a list that is too short is an error, and the count says how long it must be. */
static nvmlReturn_t write_list(const struct holder *holders, unsigned int found, unsigned int *count, void *out,
                               writer write)
{
    unsigned int room = *count;
    *count = found;
    if (found > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (found > 0 && out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < found; i++)
        write(out, i, &holders[i]);
    return NVML_SUCCESS;
}

static nvmlReturn_t list(nvmlDevice_t device, bool clients, unsigned int *count, void *out, writer write)
{
    struct simgpu_gpu *gpu;
    struct holder holders[SIMGPU_SLOTS];
    TRY(device_find(device, count, &gpu));
    return write_list(holders, list_holders(device->gpu, clients, holders), count, out, write);
}

#define LISTED(function, type, clients, write)                                                                         \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, type *out)                                         \
    {                                                                                                                  \
        return list(device, clients, count, out, write);                                                               \
    }

LISTED(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, false, write_v1)
LISTED(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, false, write_v2)
LISTED(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, false, write_v2)
LISTED(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, true, write_v1)
LISTED(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, true, write_v2)
LISTED(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, true, write_v2)

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *details)
{
    enum { GRAPHICS = 1, CLIENTS_OF_MPS = 2 };
    struct simgpu_gpu *gpu;
    struct holder holders[SIMGPU_SLOTS];
    TRY(device_find(device, details, &gpu));
    if (details->version != NVML_STRUCT_VERSION(nvmlProcessDetailList_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (details->mode > CLIENTS_OF_MPS)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int found = 0;
    if (details->mode != GRAPHICS)
        found = list_holders(device->gpu, details->mode == CLIENTS_OF_MPS, holders);
    return write_list(holders, found, &details->numProcArrayEntries, details->procArray, write_detail);
}

/* No graphics on these machines. */
#define NO_PROCESSES(function, type)                                                                                   \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, type *out)                                         \
    {                                                                                                                  \
        struct simgpu_gpu *gpu;                                                                                        \
        (void)out;                                                                                                     \
        TRY(device_find(device, count, &gpu));                                                                         \
        *count = 0;                                                                                                    \
        return NVML_SUCCESS;                                                                                           \
    }

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
