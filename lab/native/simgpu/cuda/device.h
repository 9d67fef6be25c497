/* The devices that this process may use. */
#ifndef SIMGPU_DEVICE_H
#define SIMGPU_DEVICE_H

#include "core/machine.h"
#include "cuda/exports.h"

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

/* The device of an ordinal, or NULL. */
struct device *device_at(int ordinal);
/* The same for a call: an error when the driver is not ready or has no such device. */
CUresult device_find(int ordinal, struct device **dev);
struct simgpu_gpu *device_record(const struct device *dev);
struct simgpu_cell *device_cell(const struct device *dev);

#endif
