/* Device memory inside one process. Call all of these with the driver's lock held.
 *
 * Small allocations share blocks (slab.h), others have pages of their own. Each kind of memory has a file that frees
 * what it alone knows of. */
#ifndef SIMGPU_MEMORY_H
#define SIMGPU_MEMORY_H

#include "cuda/arena.h"
#include "cuda/context.h"

#define MEMORY_MAX_BYTES (1ull << 42) /* far beyond any device; sums of such sizes do not overflow */
#define STORED_BYTES (64 * MIB)       /* of one allocation; data beyond is not kept and reads as zero */

enum allocation_kind { KIND_PLAIN, KIND_MANAGED, KIND_POOL, KIND_ARRAY, KIND_VIRTUAL, KIND_IPC, KIND_GRAPH };

struct allocation {
    CUdeviceptr start;
    size_t size;
    enum allocation_kind kind;
    uint32_t charged_mib, managed_mib, kept_mib;
    unsigned char *kept;        /* by page of managed memory: whether it stays on the host; NULL: none does */
    bool touched, shared_block; /* shared_block: a small one, inside a slab */
    struct device *dev;
    CUcontext ctx; /* NULL: it outlives contexts */
    CUmemoryPool pool;
    uint64_t exported; /* the number by which others may open it; 0: not exported */
    void *extra;
    struct allocation *next, *previous; /* in its context's list */
};

CUresult memory_allocate(CUcontext ctx, enum allocation_kind kind, size_t size, struct allocation **out);
void memory_free(struct allocation *a);
void memory_free_all(CUcontext ctx);
/* The allocation that an address is in, or NULL. */
struct allocation *memory_find(CUdeviceptr at);
/* The allocation ends with the context. */
void memory_link(CUcontext ctx, struct allocation *a);
/* What the device is charged for this many bytes: blocks of 2 MiB. */
uint32_t memory_round_up_mib(size_t size);

#endif
