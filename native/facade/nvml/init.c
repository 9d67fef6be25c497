/* Initialization: without valid limits there is no driver. */
#include "nvml/hooks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { RECLAIM_INTERVAL_MS = 100 };

const char facade_library[] = "libnvidia-ml.so.1";

int facade_denied(void)
{
    return NVML_ERROR_UNINITIALIZED;
}

/* NVML is initialized once for a process, and the facade of CUDA uses it too. A program is not to notice that, so what
 * needs initialization answers only once the program has asked for it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned uses; /* how often the program has initialized it more than it has shut it down */

bool facade_is_ready(const char *name, bool forbidden)
{
    static const char *const always[] = {"nvmlInit",
                                         "nvmlErrorString",
                                         "nvmlSystemGetNVMLVersion",
                                         "nvmlSystemGetCudaDriverVersion",
                                         "nvmlGetExcludedDevice",
                                         "nvmlGetVgpuVersion"};
    (void)forbidden;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strncmp(name, always[i], strlen(always[i])) == 0)
            return true;
    return atomic_load(&uses) > 0;
}

int facade_missing(void)
{
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}

/* This library has no units that call each other back. */
void facade_opened(const struct facade *facade)
{
    (void)facade;
}

static nvmlReturn_t after_init(nvmlReturn_t result)
{
    if (result != NVML_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&uses, 1);
    granted_devices_find();
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t result = NVML_ERROR_UNINITIALIZED;
    pthread_mutex_lock(&lock);
    if (atomic_load(&uses) > 0)
        result = REAL(nvmlShutdown)();
    if (result == NVML_SUCCESS && atomic_fetch_sub(&uses, 1) == 1)
        table_forget();
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t nvmlInit(void)
{
    return facade_open() == NULL ? NVML_ERROR_DRIVER_NOT_LOADED : after_init(REAL(nvmlInit)());
}

nvmlReturn_t nvmlInit_v2(void)
{
    return facade_open() == NULL ? NVML_ERROR_DRIVER_NOT_LOADED : after_init(REAL(nvmlInit_v2)());
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    return facade_open() == NULL ? NVML_ERROR_DRIVER_NOT_LOADED : after_init(REAL(nvmlInitWithFlags)(flags));
}

/* The one function that returns text, so it must not call the stubs, which return numbers. */
const char *nvmlErrorString(nvmlReturn_t result)
{
    const char *(*real)(nvmlReturn_t) = (const char *(*)(nvmlReturn_t))table_find_real(ENTRY_nvmlErrorString);
    if (real != NULL)
        return real(result);
    return result == NVML_ERROR_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

void reclaim_dead_processes(void)
{
    static _Atomic uint64_t reclaimed_at_ms;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, last = reclaimed_at_ms;
    if (now_ms - last < RECLAIM_INTERVAL_MS || !atomic_compare_exchange_strong(&reclaimed_at_ms, &last, now_ms))
        return;
    struct identity self = identity_of_this_process();
    account_reclaim(&facade_open()->account, &self, LAMINA_SLOTS);
}
