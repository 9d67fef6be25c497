#include "cuda/driver.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct driver_state driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

void driver_after_fork(void)
{
    if (driver.mps != 0)
        close(driver.mps - 1);
    memset(&driver, 0, sizeof driver);
    pthread_mutex_init(&driver.lock, NULL);
}

CUresult driver_check_ready(void)
{
    return atomic_load(&driver.ready) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

uint64_t driver_identity(void)
{
    return driver.m.processes[driver.slot].identity;
}

void driver_delay(uint32_t us)
{
    struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};
    while (us != 0 && nanosleep(&left, &left) != 0) {
    }
}

struct device *device_at(int ordinal)
{
    return ordinal >= 0 && ordinal < driver.count ? &driver.devices[ordinal] : NULL;
}

CUresult device_find(int ordinal, struct device **dev)
{
    TRY(driver_check_ready());
    *dev = device_at(ordinal);
    return *dev != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

struct simgpu_gpu *device_record(const struct device *dev)
{
    return machine_gpu(&driver.m, dev->gpu);
}

struct simgpu_cell *device_cell(const struct device *dev)
{
    return machine_cell(&driver.m, dev->gpu, driver.slot);
}
