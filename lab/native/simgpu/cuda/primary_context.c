/* Primary contexts: one per device, which lives while it is retained. */
#include "cuda/context.h"
#include "cuda/driver.h"

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice ordinal)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    CUresult result = CUDA_SUCCESS;
    if (dev->primary == NULL)
        result = context_create_in(dev->primary_place, &dev->primary, ordinal, dev->primary_flags);
    if (result == CUDA_SUCCESS) {
        dev->primary_place = dev->primary;
        dev->primary_refs++;
        *out = dev->primary;
    }
    driver_unlock();
    return result;
}

/* `all`: whatever the count is, as a reset does. */
static CUresult release(int ordinal, bool all)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    driver_lock();
    CUresult result = dev->primary != NULL || all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (dev->primary != NULL && (all || --dev->primary_refs == 0)) {
        context_destroy(dev->primary);
        dev->primary = NULL;
        dev->primary_refs = 0;
    }
    driver_unlock();
    return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal)
{
    return release(ordinal, false);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal)
{
    return release(ordinal, true);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (flags != NULL)
        *flags = dev->primary_flags;
    if (active != NULL)
        *active = dev->primary != NULL;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    dev->primary_flags = flags;
    return CUDA_SUCCESS;
}
