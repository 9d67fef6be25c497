/* Initialization. */
#include "nvml/library.h"

#include "core/visible.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct library_state library;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

nvmlReturn_t library_check_ready(void)
{
    return atomic_load(&library.uses) > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t library_copy_text(char *to, unsigned int length, const char *text)
{
    if (to == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}

/* Called with the lock held. */
static nvmlReturn_t start(void)
{
    if (library.uses == 0) {
        if (!machine_open(&library.m))
            return NVML_ERROR_DRIVER_NOT_LOADED;
        visible_read(&library.m);
    }
    for (uint32_t i = 0; i < library.m.visible_count; i++)
        library.devices[i] = (struct nvmlDevice_st){.gpu = library.m.visible[i], .index = i};
    for (uint32_t unit = 0; unit < SIMGPU_MAX_UNITS; unit++)
        library.units[unit].gpu = unit;
    atomic_fetch_add(&library.uses, 1);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = start();
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

/* The mapping stays, because another thread may be in a call. */
nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = library_check_ready();
    if (result == NVML_SUCCESS)
        atomic_fetch_sub(&library.uses, 1);
    pthread_mutex_unlock(&lock);
    return result;
}
