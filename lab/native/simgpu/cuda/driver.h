/* The driver's state in this process, and the devices that it may use. */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#include "core/machine.h"
#include "core/try.h"
#include "cuda/exports.h"

#include <pthread.h>
#include <stdbool.h>

#define LAUNCH_BACKLOG 1024

struct device {
    uint32_t gpu;                     /* number in the machine file */
    CUcontext primary, primary_place; /* NULL while there is none; NULL before the first */
    unsigned int primary_refs, primary_flags;
    CUmemoryPool default_pool, current_pool;
    struct slab *slabs[12], *spare_slabs[12];
    uint32_t graph_reserved_mib, graph_live_mib; /* of graphs: charged, and allocated */
    uint64_t graph_end;                          /* position of the end of the newest work of graphs that allocate */
    _Atomic uint64_t backlog[LAUNCH_BACKLOG];
    _Atomic uint64_t launches;
    _Atomic uint32_t kept_mib; /* managed memory that stays on the host */
};

struct driver_state {
    _Atomic bool ready;
    struct machine m;
    uint32_t slot;
    int mps; /* one more than the descriptor of the connection to MPS; 0 without */
    int count;
    struct device devices[SIMGPU_MAX_GPUS];
    CUcontext contexts;
    unsigned long long next_id;
    pthread_mutex_t lock; /* protects everything above and below that is not atomic */
};

extern struct driver_state driver;

static inline void driver_lock(void)
{
    pthread_mutex_lock(&driver.lock);
}
static inline void driver_unlock(void)
{
    pthread_mutex_unlock(&driver.lock);
}

/* An error when cuInit was not called in this process. */
CUresult driver_check_ready(void);
/* This process, as the slots of the machine know it. */
uint64_t driver_identity(void);
/* Makes the calling thread wait, like a driver that takes this long. */
void driver_delay(uint32_t us);
/* In a forked child nothing of the parent's driver is valid: slot and memory are the parent's. */
void driver_after_fork(void);

/* The device of an ordinal, or NULL. */
struct device *device_at(int ordinal);
/* The same for a call: an error when the driver is not ready or has no such device. */
CUresult device_find(int ordinal, struct device **dev);
struct simgpu_gpu *device_record(const struct device *dev);
struct simgpu_cell *device_cell(const struct device *dev);

#endif
