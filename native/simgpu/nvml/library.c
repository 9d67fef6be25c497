/* Initialisation and what NVML says about the system. */
#include "library.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

library_state library;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool library_ready(void) { return __atomic_load_n(&library.uses, __ATOMIC_ACQUIRE) > 0; }

nvmlReturn_t copy_text(char *to, unsigned int length, const char *text) {
    if (to == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    nvmlReturn_t result = NVML_SUCCESS;
    (void)flags;
    pthread_mutex_lock(&lock);
    if (library.uses == 0 && !machine_open(&library.m)) result = NVML_ERROR_DRIVER_NOT_LOADED;
    if (result == NVML_SUCCESS) {
        for (uint32_t i = 0; i < library.m.visible_count; i++)
            library.devices[i] = (struct nvmlDevice_st){.gpu = library.m.visible[i], .index = i};
        for (uint32_t unit = 0; unit < SIMGPU_MAX_UNITS; unit++) library.units[unit].gpu = unit;
        __atomic_add_fetch(&library.uses, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

SIM_API nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

SIM_API nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

/* The mapping stays, because another thread may be in a call. */
SIM_API nvmlReturn_t nvmlShutdown(void) {
    nvmlReturn_t result = NVML_SUCCESS;
    pthread_mutex_lock(&lock);
    if (library.uses == 0) result = NVML_ERROR_UNINITIALIZED;
    else __atomic_sub_fetch(&library.uses, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return result;
}

SIM_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    return copy_text(version, length, library.m.head->driver);
}

SIM_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    return copy_text(version, length, library.m.head->nvml);
}

SIM_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    if (version == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    *version = (int)library.m.head->cuda_version;
    return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }

SIM_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length) {
    char path[32], text[4096];
    if (!library_ready()) return NVML_ERROR_UNINITIALIZED;
    if (name == NULL || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return NVML_ERROR_NOT_FOUND;
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0'; /* the first word of the command */
    if (bytes == 0) return NVML_ERROR_NOT_FOUND;
    snprintf(name, length, "%s", text);
    return NVML_SUCCESS;
}
