/* cuInit: takes a slot in the account, and checks that the driver shows only the granted GPUs. */
#include "compute/time_share.h"
#include "cuda/devices.h"
#include "cuda/driver_environment.h"
#include "cuda/hooks.h"
#include "cuda/process.h"
#include "shared/facade.h"
#include "shared/log.h"

#include <stdatomic.h>

const char facade_library[] = "libcuda.so.1";

static atomic_bool refused;

int facade_denied(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

/* The driver knows, also in a forked child. Only what is forbidden does not ask it anyway. */
bool facade_is_ready(const char *name, bool forbidden)
{
    int count;
    (void)name;
    return !forbidden || facade_open() == NULL || REAL(cuDeviceGetCount)(&count) != CUDA_ERROR_NOT_INITIALIZED;
}

int facade_missing(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* For good: none of the driver's functions is called any more, as it may be initialized with other GPUs. */
static CUresult refuse_driver(const char *why)
{
    if (!atomic_exchange(&refused, true))
        log_line(LOG_ERROR, "no device: %s", why);
    for (unsigned i = 0; i < ENTRIES; i++)
        atomic_store(&lamina_table[i], (void *)facade_denied);
    return CUDA_ERROR_NO_DEVICE;
}

CUresult cuInit(unsigned int flags)
{
    const struct facade *facade = facade_open();
    if (facade == NULL || refused)
        return CUDA_ERROR_NO_DEVICE;
    process_watch_forks();
    if (process_slot() == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (!driver_environment_is_limited(&facade->limits))
        return refuse_driver("this driver cannot be held to the granted part of the GPU as a client of MPS");
    CUresult result = REAL(cuInit)(flags);
    if (result == CUDA_SUCCESS && !devices_map())
        result = refuse_driver("the driver shows GPUs that are not in the limits");
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < facade->limits.device_count; i++)
        time_share_note_use((int)i, monotonic_ns());
    return result;
}
