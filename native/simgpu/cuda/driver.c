/* cuInit: finds the machine, takes a slot in it and lists the devices that this process may use. */
#include "driver.h"

#include "mig.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

driver_state driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* In a child nothing of the parent's driver is valid: the slot and the memory are the parent's. */
static void forget_parent(void) {
    uint32_t generation = driver.generation + 1;
    if (driver.mps != 0) close(driver.mps - 1);
    memset(&driver, 0, sizeof driver);
    driver.generation = generation;
    pthread_mutex_init(&driver.lock, NULL);
}

static uint64_t speed(uint32_t gpu) {
    const simgpu_gpu *record = machine_gpu(&driver.m, gpu);
    return (uint64_t)record->sm_count * record->threads_per_sm * record->sm_clock_mhz;
}

/* CUDA's own numbers: the fastest GPU is 0, the others in the order of their bus ids; or all of them in that order.
 * GPUs in MIG mode have none. Returns how many there are. */
static uint32_t cuda_order(uint32_t *gpus) {
    const char *order = getenv("CUDA_DEVICE_ORDER");
    uint32_t count = 0, fastest = 0;
    for (uint32_t i = 0; i < driver.m.visible_count; i++)
        if (!mig_on(&driver.m, driver.m.visible[i])) gpus[count++] = driver.m.visible[i];
    if (count == 0 || (order != NULL && strcmp(order, "PCI_BUS_ID") == 0)) return count;
    for (uint32_t i = 1; i < count; i++)
        if (speed(gpus[i]) > speed(gpus[fastest])) fastest = i;
    uint32_t first = gpus[fastest];
    memmove(gpus + 1, gpus, fastest * sizeof gpus[0]);
    gpus[0] = first;
    return count;
}

/* As in CUDA, one MIG device at most, and none beside whole GPUs unless it is named. */
static uint32_t visible_gpus(uint32_t *gpus) {
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    uint32_t ordered[SIMGPU_MAX_UNITS], chosen[SIMGPU_MAX_UNITS];
    uint32_t count = cuda_order(ordered);
    for (uint32_t unit = driver.m.head->gpu_count; count == 0 && unit < driver.m.head->unit_count; unit++)
        if (mig_visible(&driver.m, unit)) ordered[count++] = unit;
    if (list != NULL) count = machine_select(&driver.m, list, ordered, count, chosen);
    else memcpy(chosen, ordered, sizeof ordered);
    for (uint32_t i = 0; i < count; i++) {
        bool instance = chosen[i] >= driver.m.head->gpu_count;
        if (instance && i > 0) return i;
        gpus[i] = chosen[i];
        if (instance) return 1;
    }
    return count;
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget_parent);
}

static CUresult start(void) {
    uint32_t gpus[SIMGPU_MAX_GPUS];
    if (!machine_open(&driver.m)) return CUDA_ERROR_NO_DEVICE;
    uint32_t count = visible_gpus(gpus);
    CUresult failed = count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
    if (failed == CUDA_SUCCESS) {
        driver.slot = slots_join(&driver.m);
        if (driver.slot == UINT32_MAX) failed = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (failed == CUDA_SUCCESS) {
        failed = mps_join(&driver.m, driver.slot, gpus, &count, &driver.mps);
        if (failed != CUDA_SUCCESS) slots_leave(&driver.m, driver.slot);
    }
    if (failed != CUDA_SUCCESS) {
        machine_close(&driver.m);
        return failed;
    }
    for (uint32_t i = 0; i < count; i++) driver.devices[i].gpu = gpus[i];
    driver.count = (int)count;
    __atomic_store_n(&driver.ready, true, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuInit(unsigned int flags) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    pthread_once(&once, watch_forks); /* before the lock, which a child may be forked with */
    driver_lock();
    CUresult result = driver.ready ? CUDA_SUCCESS : start();
    driver_unlock();
    return result;
}

SIM_API CUresult cuDriverGetVersion(int *version) {
    if (version == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (driver_ready() == CUDA_SUCCESS) {
        *version = (int)driver.m.head->cuda_version;
        return CUDA_SUCCESS;
    }
    machine m = {0};
    *version = 0;
    if (machine_open(&m)) *version = (int)m.head->cuda_version;
    machine_close(&m);
    return CUDA_SUCCESS;
}

CUresult driver_ready(void) {
    return __atomic_load_n(&driver.ready, __ATOMIC_ACQUIRE) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

device *driver_device(int ordinal) {
    return ordinal >= 0 && ordinal < driver.count ? &driver.devices[ordinal] : NULL;
}

void driver_take_time(uint32_t us) {
    struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};
    while (us != 0 && nanosleep(&left, &left) != 0) {
    }
}

simgpu_gpu *device_record(const device *dev) { return machine_gpu(&driver.m, dev->gpu); }

simgpu_cell *device_cell(const device *dev) { return machine_cell(&driver.m, dev->gpu, driver.slot); }
