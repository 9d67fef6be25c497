/* cuInit: finds the machine, takes a slot in it and lists the devices that this process may use. */
#include "core/mig.h"
#include "core/slots.h"
#include "core/visible.h"
#include "cuda/arena.h"
#include "cuda/callback.h"
#include "cuda/capture.h"
#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/graph_memory.h"
#include "cuda/host.h"
#include "cuda/mps.h"
#include "cuda/ordered_free.h"
#include "cuda/pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* What a forked child forgets: all state of its parent's driver. It starts with free locks, even if another thread
 * held them at that moment. */
static void forget_parent(void)
{
    driver_after_fork();
    arena_after_fork();
    callback_after_fork();
    capture_after_fork();
    context_after_fork();
    graph_memory_after_fork();
    host_after_fork();
    ordered_free_after_fork();
    pool_after_fork();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_parent);
}

static uint64_t compute_speed(uint32_t gpu)
{
    const struct simgpu_gpu *record = machine_gpu(&driver.m, gpu);
    return (uint64_t)record->sm_count * record->threads_per_sm * record->sm_clock_mhz;
}

/* CUDA's own numbers: the fastest GPU is 0, the others in the order of their bus ids; or all of them in that order.
 * GPUs in MIG mode have none. Returns how many there are. */
static uint32_t order_gpus(uint32_t *gpus)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    uint32_t count = 0, fastest = 0;
    for (uint32_t i = 0; i < driver.m.visible_count; i++)
        if (!mig_is_enabled(&driver.m, driver.m.visible[i]))
            gpus[count++] = driver.m.visible[i];
    if (count == 0 || (order != NULL && strcmp(order, "PCI_BUS_ID") == 0))
        return count;
    for (uint32_t i = 1; i < count; i++)
        if (compute_speed(gpus[i]) > compute_speed(gpus[fastest]))
            fastest = i;
    uint32_t first = gpus[fastest];
    memmove(gpus + 1, gpus, fastest * sizeof gpus[0]);
    gpus[0] = first;
    return count;
}

/* As in CUDA, at most one MIG device, and none together with whole GPUs unless it is named. */
static uint32_t list_visible(uint32_t *gpus)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    uint32_t ordered[SIMGPU_MAX_UNITS], chosen[SIMGPU_MAX_UNITS];
    uint32_t count = order_gpus(ordered);
    for (uint32_t unit = driver.m.head->gpu_count; count == 0 && unit < driver.m.head->unit_count; unit++)
        if (mig_is_visible(&driver.m, unit))
            ordered[count++] = unit;
    if (list != NULL)
        count = visible_select(&driver.m, list, ordered, count, chosen);
    else
        memcpy(chosen, ordered, sizeof ordered);
    for (uint32_t i = 0; i < count; i++) {
        bool instance = chosen[i] >= driver.m.head->gpu_count;
        if (instance && i > 0)
            return i;
        gpus[i] = chosen[i];
        if (instance)
            return 1;
    }
    return count;
}

/* Takes a slot and joins MPS. */
static CUresult join(uint32_t *gpus, uint32_t *count)
{
    *count = list_visible(gpus);
    if (*count == 0)
        return CUDA_ERROR_NO_DEVICE;
    driver.slot = slots_join(&driver.m);
    if (driver.slot == UINT32_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = mps_join(&driver.m, driver.slot, gpus, count, &driver.mps);
    if (result != CUDA_SUCCESS)
        slots_leave(&driver.m, driver.slot);
    return result;
}

static CUresult start(void)
{
    uint32_t gpus[SIMGPU_MAX_GPUS], count;
    if (!machine_open(&driver.m))
        return CUDA_ERROR_NO_DEVICE;
    visible_read(&driver.m);
    CUresult result = join(gpus, &count);
    if (result != CUDA_SUCCESS) {
        machine_close(&driver.m);
        return result;
    }
    for (uint32_t i = 0; i < count; i++)
        driver.devices[i].gpu = gpus[i];
    driver.count = (int)count;
    driver_delay(driver.m.head->init_us);
    atomic_store(&driver.ready, true);
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags)
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_once(&once, watch_forks); /* before the first lock is taken */
    driver_lock();
    CUresult result = driver.ready ? CUDA_SUCCESS : start();
    driver_unlock();
    return result;
}

CUresult cuDriverGetVersion(int *version)
{
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (driver_check_ready() == CUDA_SUCCESS) {
        *version = (int)driver.m.head->cuda_version;
        return CUDA_SUCCESS;
    }
    struct machine m = {0};
    *version = 0;
    if (machine_open(&m))
        *version = (int)m.head->cuda_version;
    machine_close(&m);
    return CUDA_SUCCESS;
}
