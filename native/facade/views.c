/* How much memory there is and how much is free, as the container's limits and account have it. */
#include "contexts.h"
#include "devices.h"
#include "hold.h"
#include "hooks.h"
#include "pools.h"
#include "self.h"

static uint64_t limit_of(int device)
{
    return facade_open()->limits.devices[device].memory_bytes;
}

/* False when there is no context: the driver then gives its own answer. */
static bool memory(uint64_t *free, uint64_t *total)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0)
        return false;
    pools_refresh_if_freed();
    self_reclaim_sparingly();
    *total = limit_of(device);
    *free = hold_rest(device);
    return true;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    uint64_t left, all;
    if (!memory(&left, &all))
        return REAL(cuMemGetInfo_v2)(free, total);
    if (free != NULL)
        *free = left;
    if (total != NULL)
        *total = all;
    return CUDA_SUCCESS;
}

static unsigned int in_32_bits(uint64_t bytes)
{
    return bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)bytes;
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    uint64_t left, all;
    if (!memory(&left, &all))
        return REAL(cuMemGetInfo)(free, total);
    if (free != NULL)
        *free = in_32_bits(left);
    if (total != NULL)
        *total = in_32_bits(all);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = REAL(cuDeviceTotalMem_v2)(bytes, device);
    if (result == CUDA_SUCCESS && device_entry(device) >= 0)
        *bytes = limit_of(device_entry(device));
    return result;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    CUresult result = REAL(cuDeviceTotalMem)(bytes, device);
    if (result == CUDA_SUCCESS && device_entry(device) >= 0)
        *bytes = in_32_bits(limit_of(device_entry(device)));
    return result;
}
