/* The driver's state in this process. */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#include "core/machine.h"
#include "core/try.h"
#include "cuda/device.h"
#include "cuda/exports.h"

#include <pthread.h>
#include <stdbool.h>

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

#endif
