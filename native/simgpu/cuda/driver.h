/* What the parts of the simulated driver share: the process's driver state, its devices and its contexts. */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#include <pthread.h>
#include <stdbool.h>

#include "cuda_min.h"
#include "cuda_prototypes.h"
#include "lane.h"
#include "ledger.h"
#include "machine.h"
#include "slots.h"
#include "timeline.h"

#define SIM_API __attribute__((visibility("default")))
#define MIB (1ull << 20)
#define LAUNCH_BACKLOG 1024u

typedef struct allocation allocation;

struct CUstream_st {
    CUcontext ctx;
    unsigned int flags;
    int priority;
    unsigned long long id;
    uint64_t last;              /* position of the end of its newest work */
    uint32_t callbacks;         /* host functions not yet run */
    struct capture *capture;
    CUstream next;
};

typedef struct {
    uint32_t gpu;               /* number in the machine file */
    CUcontext primary;
    unsigned int primary_refs, primary_flags;
    CUmemoryPool default_pool, current_pool;
    struct slab *slabs[12], *spare_slabs[12];
    uint32_t graph_reserved_mib, graph_live_mib; /* of graphs: charged, and allocated */
    uint64_t graph_end;         /* position of the end of the newest work of graphs that allocate */
    uint64_t backlog[LAUNCH_BACKLOG];
    uint64_t launches;
} device;

struct CUctx_st {
    uint32_t magic;
    int ordinal;
    device *dev;
    unsigned int flags;
    unsigned long long id;
    size_t limits[16];
    uint32_t limits_mib;        /* what the limits take beyond those that a context begins with */
    struct CUstream_st legacy;  /* the default stream */
    CUstream streams;
    allocation *allocations;
    CUcontext next;
};

typedef struct {
    bool ready;
    uint32_t generation;        /* rises when a fork makes all handles void */
    machine m;
    uint32_t slot;
    int mps;                    /* one more than the descriptor of the connection to MPS; 0 without */
    int count;
    device devices[SIMGPU_MAX_GPUS];
    CUcontext contexts;
    unsigned long long next_id;
    pthread_mutex_t lock;       /* everything above and below that is not atomic */
} driver_state;

extern driver_state driver;

static inline void driver_lock(void) { pthread_mutex_lock(&driver.lock); }
static inline void driver_unlock(void) { pthread_mutex_unlock(&driver.lock); }

/* The device of an ordinal, or NULL. */
device *driver_device(int ordinal);
/* CUDA_SUCCESS when cuInit was called in this process. */
CUresult driver_ready(void);
/* Makes the process a client of MPS where CUDA_MPS_PIPE_DIRECTORY has a daemon: `*connection` and the clients' lanes on
 * the devices that it serves; others are taken off the list. Without a daemon nothing changes. */
CUresult mps_join(const machine *m, uint32_t slot, uint32_t *gpus, uint32_t *count, int *connection);
/* An error once the server that this process is a client of has gone. */
CUresult mps_check(void);
/* Lets the calling thread wait, as for a driver that takes so long. */
void driver_take_time(uint32_t us);
simgpu_gpu *device_record(const device *dev);
simgpu_cell *device_cell(const device *dev);

/* The calling thread's context, or NULL. */
CUcontext context_current(void);
CUresult context_needed(CUcontext *ctx);
bool context_known(CUcontext ctx);
/* Waits for all that the process asked of the context's device. */
void context_finish(CUcontext ctx);

/* The stream object of a handle: the context's default stream for the special ones. */
CUresult stream_resolve(CUstream handle, CUstream *stream);
void stream_wait(CUstream stream);
void stream_destroy_all(CUcontext ctx); /* with the lock held */
/* An error when a capture forbids to wait for the whole context. */
CUresult stream_uncaptured(CUcontext ctx);

#endif
