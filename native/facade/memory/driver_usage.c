#include "memory/driver_usage.h"

#include "nvml_prototypes.h"
#include "shared/assertion.h"
#include "shared/facade.h"
#include "shared/kept_errno.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_PROCESSES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Written once, by the lock, before any of it is read. */
static bool tried;
static __typeof__(nvmlDeviceGetComputeRunningProcesses_v3) *list_processes;
static __typeof__(nvmlDeviceGetMemoryInfo) *memory_info;
static nvmlDevice_t handles[LAMINA_MAX_DEVICES];

static void open_nvml(const struct facade *facade)
{
    char path[sizeof facade->directory + 64];
    snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", facade->directory);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    __typeof__(nvmlInit_v2) *init = dlsym(library, "nvmlInit_v2");
    __typeof__(nvmlDeviceGetHandleByUUID) *handle = dlsym(library, "nvmlDeviceGetHandleByUUID");
    if (init == NULL || handle == NULL || init() != NVML_SUCCESS)
        return;
    for (uint32_t i = 0; i < facade->limits.device_count; i++)
        if (handle(facade->limits.devices[i].uuid, &handles[i]) != NVML_SUCCESS)
            handles[i] = NULL;
    list_processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (list_processes == NULL)
        list_processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
    memory_info = dlsym(library, "nvmlDeviceGetMemoryInfo");
}

static nvmlDevice_t handle_of(int device)
{
    KEEP_ERRNO;
    pthread_mutex_lock(&lock);
    const struct facade *facade = facade_open();
    if (!tried && facade != NULL)
        open_nvml(facade);
    tried = true;
    pthread_mutex_unlock(&lock);
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    return handles[device];
}

/* The processes on a device, to be freed; NULL when the driver does not say. */
static nvmlProcessInfo_t *read_processes(int device, unsigned *count)
{
    KEEP_ERRNO;
    nvmlDevice_t handle = handle_of(device);
    if (handle == NULL || list_processes == NULL)
        return NULL;
    nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned room = 64; result == NVML_ERROR_INSUFFICIENT_SIZE && room <= MAX_PROCESSES; room *= 4) {
        nvmlProcessInfo_t *infos = calloc(room, sizeof *infos);
        *count = room;
        result = infos == NULL ? NVML_ERROR_MEMORY : list_processes(handle, count, infos);
        if (result == NVML_SUCCESS)
            return infos;
        free(infos);
    }
    return NULL;
}

bool driver_usage_of_process(int device, uint64_t *bytes)
{
    const unsigned self = (unsigned)getpid();
    unsigned count = 0;
    bool found = false;
    nvmlProcessInfo_t *infos = read_processes(device, &count);
    for (unsigned i = 0; infos != NULL && i < count; i++)
        if (infos[i].pid == self && infos[i].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE) {
            *bytes = infos[i].usedGpuMemory;
            found = true;
        }
    free(infos);
    return found;
}

bool driver_list_read(int device, struct driver_list *list)
{
    unsigned count = 0;
    nvmlProcessInfo_t *infos = read_processes(device, &count);
    bool known = infos != NULL && count <= sizeof list->pids / sizeof *list->pids;
    list->count = known ? count : 0;
    for (unsigned i = 0; i < list->count; i++)
        list->pids[i] = infos[i].pid;
    free(infos);
    return known;
}

static bool is_on(const struct driver_list *list, unsigned pid)
{
    for (unsigned i = 0; i < list->count; i++)
        if (list->pids[i] == pid)
            return true;
    return false;
}

unsigned driver_list_newcomers(int device, const struct driver_list *before, uint64_t *bytes)
{
    unsigned count = 0, newcomers = 0;
    nvmlProcessInfo_t *infos = read_processes(device, &count);
    for (unsigned i = 0; infos != NULL && i < count; i++)
        if (!is_on(before, infos[i].pid) && infos[i].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE) {
            *bytes = infos[i].usedGpuMemory;
            newcomers++;
        }
    free(infos);
    return newcomers;
}

bool driver_usage_of_device(int device, uint64_t *bytes)
{
    KEEP_ERRNO;
    nvmlDevice_t handle = handle_of(device);
    nvmlMemory_t memory;
    if (handle == NULL || memory_info == NULL || memory_info(handle, &memory) != NVML_SUCCESS)
        return false;
    *bytes = memory.used;
    return true;
}

void driver_usage_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    tried = false;
    for (int i = 0; i < LAMINA_MAX_DEVICES; i++)
        handles[i] = NULL;
}
