/* Which processes use a device: the container's own, by the pids that they have in it. */
#include "nvml/hooks.h"
#include "shared/assertion.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct process {
    unsigned pid;
    unsigned long long bytes;
};

/* The processes that hold memory on the device, at most LAMINA_SLOTS; returns how many. */
static unsigned processes_of(int entry, struct process *processes)
{
    const struct account *account = &facade_open()->account;
    unsigned count = 0;
    reclaim_dead_processes();
    for (uint32_t i = 0; i < account_slot_count(account); i++) {
        struct lamina_slot *slot = account_slot(account, i);
        uint64_t owner = atomic_load(&slot->owner);
        uint64_t bytes = account_slot_held(slot, (uint32_t)entry);
        if (owner != 0 && (owner & LAMINA_OWNER_CLEARING) == 0 && bytes != 0)
            processes[count++] = (struct process){(unsigned)owner_pid(owner), bytes};
    }
    return count;
}

/* Writes one process in the format of a call's list. */
typedef void (*writer)(void *infos, unsigned index, const struct process *process);

static void write_v1(void *infos, unsigned index, const struct process *process)
{
    ((nvmlProcessInfo_v1_t *)infos)[index] = (nvmlProcessInfo_v1_t){process->pid, process->bytes};
}

static void write_v2(void *infos, unsigned index, const struct process *process)
{
    ((nvmlProcessInfo_t *)infos)[index] =
        (nvmlProcessInfo_t){process->pid, process->bytes, NVML_NO_INSTANCE, NVML_NO_INSTANCE};
}

static void write_detail(void *infos, unsigned index, const struct process *process)
{
    ((nvmlProcessDetail_v1_t *)infos)[index] =
        (nvmlProcessDetail_v1_t){process->pid, process->bytes, NVML_NO_INSTANCE, NVML_NO_INSTANCE, 0};
}

/* Fills a list as NVML does: a list that is too short is an error, and the count says how long it must be. */
static nvmlReturn_t fill_list(nvmlDevice_t device, unsigned *count, void *infos, writer write)
{
    int entry = granted_entry(device);
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (entry < 0)
        return NVML_ERROR_NO_PERMISSION;
    ASSERT(entry < LAMINA_MAX_DEVICES);
    struct process *processes = calloc(LAMINA_SLOTS, sizeof *processes);
    if (processes == NULL)
        return NVML_ERROR_MEMORY;
    unsigned found = processes_of(entry, processes), room = *count;
    for (unsigned i = 0; found <= room && infos != NULL && i < found; i++)
        write(infos, i, &processes[i]);
    ASSERT(found <= LAMINA_SLOTS);
    free(processes);
    *count = found;
    if (found > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    return found > 0 && infos == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

/* Calls the driver first, which knows whether the device exists and NVML is initialized. */
static nvmlReturn_t check_device(nvmlDevice_t device)
{
    char uuid[96];
    return REAL(nvmlDeviceGetUUID)(device, uuid, sizeof uuid);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
    nvmlReturn_t result = check_device(device);
    return result != NVML_SUCCESS ? result : fill_list(device, count, infos, write_v1);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
    nvmlReturn_t result = check_device(device);
    return result != NVML_SUCCESS ? result : fill_list(device, count, infos, write_v2);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
    nvmlReturn_t result = check_device(device);
    return result != NVML_SUCCESS ? result : fill_list(device, count, infos, write_v2);
}

/* What the driver says about the version and the mode, without its list. */
static nvmlReturn_t check_details(nvmlDevice_t device, const nvmlProcessDetailList_t *list)
{
    nvmlProcessDetailList_t empty = {.version = list->version, .mode = list->mode};
    nvmlReturn_t result = REAL(nvmlDeviceGetRunningProcessDetailList)(device, &empty);
    return result == NVML_ERROR_INSUFFICIENT_SIZE ? NVML_SUCCESS : result;
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *list)
{
    enum { COMPUTE = 0 };
    if (list == NULL)
        return REAL(nvmlDeviceGetRunningProcessDetailList)(device, list);
    nvmlReturn_t result = check_details(device, list);
    if (result != NVML_SUCCESS)
        return result;
    if (list->mode == COMPUTE)
        return fill_list(device, &list->numProcArrayEntries, list->procArray, write_detail);
    list->numProcArrayEntries = 0;
    return NVML_SUCCESS;
}

/* Only compute processes are in the account. */
static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned *count)
{
    nvmlReturn_t result = check_device(device);
    if (result == NVML_SUCCESS && count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *count = 0;
    return result;
}

#define NO_PROCESSES(name, type)                                                                                       \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, type *infos)                                           \
    {                                                                                                                  \
        (void)infos;                                                                                                   \
        return no_processes(device, count);                                                                            \
    }
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

/* Of two processes with the same pid, the one in the caller's pid namespace. */
struct lamina_slot *slot_of_pid(unsigned pid)
{
    const struct account *account = &facade_open()->account;
    struct lamina_slot *other = NULL;
    for (uint32_t i = 0; i < account_slot_count(account); i++) {
        struct lamina_slot *slot = account_slot(account, i);
        uint64_t owner = atomic_load(&slot->owner);
        if (owner == 0 || (unsigned)owner_pid(owner) != pid)
            continue;
        const struct identity self = identity_of_this_process();
        if (!owner_is_in_other_namespace(owner, &self))
            return slot;
        other = slot;
    }
    return other;
}

/* The driver's own accounting covers the whole machine. */
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count, unsigned int *pids)
{
    (void)device, (void)count, (void)pids;
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats)
{
    (void)device, (void)pid, (void)stats;
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t *stats)
{
    (void)device, (void)stats;
    return NVML_ERROR_NOT_SUPPORTED;
}

/* By the account: what its process had as its name when it began to use the GPU. */
static nvmlReturn_t copy_name(const struct lamina_slot *slot, char *name, unsigned length)
{
    char copy[sizeof slot->name];
    memcpy(copy, slot->name, sizeof copy); /* its process may write to it meanwhile */
    snprintf(name, length, "%.*s", (int)sizeof copy, copy);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    if (facade_open() == NULL || !facade_is_ready(__func__, false))
        return (nvmlReturn_t)facade_denied();
    if (name == NULL || length == 0)
        return REAL(nvmlSystemGetProcessName)(pid, name, length);
    const struct identity self = identity_of_this_process();
    struct lamina_slot *slot = slot_of_pid(pid);
    if (slot == NULL)
        return NVML_ERROR_NOT_FOUND;
    if (owner_is_in_other_namespace(atomic_load(&slot->owner), &self)) /* the driver names another one with that pid */
        return copy_name(slot, name, length);
    nvmlReturn_t result = REAL(nvmlSystemGetProcessName)(pid, name, length);
    return result == NVML_ERROR_NOT_FOUND ? copy_name(slot, name, length) : result;
}
