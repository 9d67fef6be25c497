/* The record of a piece of device memory, or of addresses for it. */
#ifndef SIMGPU_ALLOCATION_H
#define SIMGPU_ALLOCATION_H

#include "cuda/driver.h"

#include <stddef.h>

#define MEMORY_MAX_BYTES (1ull << 42) /* far beyond any device; sums of such sizes do not overflow */
#define STORED_BYTES (64 * MIB)       /* of one allocation; data beyond is not kept and reads as zero */

enum allocation_kind { KIND_PLAIN, KIND_MANAGED, KIND_POOL, KIND_ARRAY, KIND_VIRTUAL, KIND_IPC, KIND_GRAPH };

struct allocation;

/* A free that waits in a stream. */
struct ordered {
    CUstream stream; /* only compared: it may be gone */
    uint64_t position, callback;
    void (*end)(struct allocation *a);
    struct allocation *next;
};

struct allocation {
    CUdeviceptr start;
    size_t size;
    enum allocation_kind kind;
    uint32_t charged_mib, managed_mib, kept_mib;
    unsigned char *kept;        /* by page of managed memory: whether it stays on the host; NULL: none does */
    bool touched, shared_block; /* shared_block: a small one, inside a slab */
    bool freed;                 /* by the program, but not yet by the GPU */
    struct ordered ordered;
    struct device *dev;
    CUcontext ctx; /* NULL: it outlives contexts */
    CUmemoryPool pool;
    uint64_t exported; /* the number by which others may open it; 0: not exported */
    void *extra;
    void (*release)(struct allocation *a); /* frees what only its kind knows of; NULL: nothing */
    struct allocation *next, *previous;    /* in its context's list */
};

#endif
