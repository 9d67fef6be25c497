/* Initialisation: with no sound limits there is no driver. */
#include "nvml_hooks.h"

#include <stdatomic.h>
#include <time.h>

enum { SWEEP_EVERY_MS = 100 };

const char facade_library[] = "libnvidia-ml.so.1";

#define HOOK(i, name, since) #name,
#define PASS(i, name, since) #name,
#define FORBID(i, name, since) #name,
const char facade_names[][64] = {
#include "generated/nvml_table.h"
};
#undef HOOK
#undef PASS
#undef FORBID

int facade_denied(void)
{
    return NVML_ERROR_UNINITIALIZED;
}

int facade_missing(void)
{
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static nvmlReturn_t initialised(nvmlReturn_t result)
{
    if (result == NVML_SUCCESS)
        granted_find();
    return result;
}

nvmlReturn_t nvmlInit(void)
{
    return facade_open() == NULL ? NVML_ERROR_DRIVER_NOT_LOADED : initialised(REAL(nvmlInit)());
}

nvmlReturn_t nvmlInit_v2(void)
{
    return facade_open() == NULL ? NVML_ERROR_DRIVER_NOT_LOADED : initialised(REAL(nvmlInit_v2)());
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    return facade_open() == NULL ? NVML_ERROR_DRIVER_NOT_LOADED : initialised(REAL(nvmlInitWithFlags)(flags));
}

/* The one function that returns text, so it must not meet the stubs that return numbers. */
const char *nvmlErrorString(nvmlReturn_t result)
{
    const char *(*real)(nvmlReturn_t) = (const char *(*)(nvmlReturn_t))facade_real(ENTRY_nvmlErrorString);
    if (real != NULL)
        return real(result);
    return result == NVML_ERROR_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

void account_sweep(void)
{
    static _Atomic uint64_t swept_at_ms;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, last = swept_at_ms;
    if (now_ms - last < SWEEP_EVERY_MS || !atomic_compare_exchange_strong(&swept_at_ms, &last, now_ms))
        return;
    struct identity self = identity_of_self();
    account_reclaim(&facade_open()->account, &self, LAMINA_SLOTS);
}
