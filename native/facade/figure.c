/* NVML's figures, from the real library: what the driver itself says that a process uses. */
#include "contexts.h"
#include "facade.h"
#include "nvml_min.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef nvmlReturn_t (*init_call)(void);
typedef nvmlReturn_t (*handle_call)(const char *uuid, nvmlDevice_t *device);
typedef nvmlReturn_t (*list_call)(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos);
typedef nvmlReturn_t (*memory_call)(nvmlDevice_t device, nvmlMemory_t *memory);

enum { MOST_PROCESSES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool tried;
static list_call list;
static memory_call memory_info;
static nvmlDevice_t handles[LAMINA_MAX_DEVICES];

static void open_nvml(const struct facade *facade)
{
    char path[sizeof facade->directory + 64];
    snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", facade->directory);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    init_call init = (init_call)dlsym(library, "nvmlInit_v2");
    handle_call handle = (handle_call)dlsym(library, "nvmlDeviceGetHandleByUUID");
    if (init == NULL || handle == NULL || init() != NVML_SUCCESS)
        return;
    for (uint32_t i = 0; i < facade->limits.device_count; i++)
        if (handle(facade->limits.devices[i].uuid, &handles[i]) != NVML_SUCCESS)
            handles[i] = NULL;
    list = (list_call)dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (list == NULL)
        list = (list_call)dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
    memory_info = (memory_call)dlsym(library, "nvmlDeviceGetMemoryInfo");
}

static nvmlDevice_t handle_of(int device)
{
    pthread_mutex_lock(&lock);
    const struct facade *facade = facade_open();
    if (!tried && facade != NULL)
        open_nvml(facade);
    tried = true;
    pthread_mutex_unlock(&lock);
    return handles[device];
}

int figure_of_process(int device, uint64_t *bytes)
{
    nvmlDevice_t handle = handle_of(device);
    if (handle == NULL || list == NULL)
        return 0;
    const unsigned self = (unsigned)getpid();
    int found = 0;
    nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned room = 64; result == NVML_ERROR_INSUFFICIENT_SIZE && room <= MOST_PROCESSES; room *= 4) {
        unsigned count = room;
        nvmlProcessInfo_t *infos = calloc(room, sizeof *infos);
        result = infos == NULL ? NVML_ERROR_MEMORY : list(handle, &count, infos);
        for (unsigned i = 0; result == NVML_SUCCESS && i < count; i++)
            if (infos[i].pid == self && infos[i].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE) {
                *bytes = infos[i].usedGpuMemory;
                found = 1;
            }
        free(infos);
    }
    return found;
}

int figure_of_device(int device, uint64_t *bytes)
{
    nvmlDevice_t handle = handle_of(device);
    nvmlMemory_t memory;
    if (handle == NULL || memory_info == NULL || memory_info(handle, &memory) != NVML_SUCCESS)
        return 0;
    *bytes = memory.used;
    return 1;
}

void figure_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    tried = false;
    for (int i = 0; i < LAMINA_MAX_DEVICES; i++)
        handles[i] = NULL;
}
