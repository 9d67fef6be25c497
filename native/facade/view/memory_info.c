/* How much memory there is and how much is free, by the container's limits and account. */
#include "cuda/context_table.h"
#include "cuda/devices.h"
#include "cuda/hooks.h"
#include "cuda/process.h"
#include "memory/contexts.h"
#include "memory/ordered_frees.h"
#include "memory/pools.h"
#include "memory/reserve.h"
#include "shared/live_limits.h"

static uint64_t limit_of(int device)
{
    return live_memory(&facade_open()->account, (uint32_t)device);
}

/* False when there is no context that was granted; then the driver's answer stands. */
static bool container_memory(uint64_t *free, uint64_t *total)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0)
        return false;
    ordered_frees_collect();
    pools_refresh_if_shrunk();
    process_reclaim_dead_if_due();
    contexts_correct_guesses();
    *total = limit_of(device);
    *free = reserve_available(device);
    return true;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    uint64_t left, all;
    CUresult result = REAL(cuMemGetInfo_v2)(free, total); /* it also says whether the context still works */
    if (result != CUDA_SUCCESS || !container_memory(&left, &all))
        return result;
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
    CUresult result = REAL(cuMemGetInfo)(free, total);
    if (result != CUDA_SUCCESS || !container_memory(&left, &all))
        return result;
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
