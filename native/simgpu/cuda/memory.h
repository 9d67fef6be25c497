/* Device memory inside one process: addresses, allocations, and what they are charged.
 *
 * A device address is an address of this process too: a huge reservation that costs nothing until data is copied
 * into it. The device is charged in blocks of 2 MiB, as the real one; small allocations share blocks. */
#ifndef SIMGPU_MEMORY_H
#define SIMGPU_MEMORY_H

#include "driver.h"

#define PAGE_BYTES (2 * MIB)
#define STORED_BYTES (64 * MIB) /* of one allocation; data beyond is not kept and reads as zero */

typedef enum { KIND_PLAIN, KIND_MANAGED, KIND_POOL, KIND_ARRAY, KIND_VIRTUAL, KIND_IPC, KIND_GRAPH } allocation_kind;

struct allocation {
    CUdeviceptr start;
    size_t size;
    allocation_kind kind;
    uint32_t charged_mib, managed_mib;
    bool touched, shared_block;  /* shared_block: a small one, inside a slab */
    device *dev;
    CUcontext ctx;               /* NULL: it outlives contexts */
    CUmemoryPool pool;
    uint64_t exported;           /* the number under which others may open it; 0: none may */
    void *extra;
    allocation *next, *previous; /* in its context's list */
};

/* All of these want the driver's lock. */
CUdeviceptr arena_reserve(size_t bytes);
void arena_release(CUdeviceptr start, size_t bytes);
/* What lies at these pages: an allocation, or a slab (slab_mark). NULL clears. */
void arena_set(CUdeviceptr start, size_t bytes, void *what);
void *arena_get(CUdeviceptr at);
bool arena_contains(CUdeviceptr at);
void arena_discard(CUdeviceptr start, size_t bytes); /* forgets data */

CUresult slab_allocate(CUcontext ctx, size_t size, allocation **out);
void slab_free(allocation *a);
allocation *slab_find(void *what, CUdeviceptr at); /* for what arena_get gave; NULL when it is no slab's */
bool slab_owns(const void *what);

bool charge_take(device *dev, uint32_t mib);
/* Without trying anything else before it says no. */
bool charge_take_once(device *dev, uint32_t mib);
/* Bytes that the process could still get, of how many; its cgroup's where that has a limit. */
void charge_rest(const device *dev, uint64_t *rest, uint64_t *total);
void charge_give(device *dev, uint32_t mib);

CUresult memory_new(CUcontext ctx, allocation_kind kind, size_t size, allocation **out);
void memory_free(allocation *a);
void memory_free_all(CUcontext ctx);
allocation *memory_find(CUdeviceptr at);
void memory_link(CUcontext ctx, allocation *a);
uint32_t memory_blocks_mib(size_t size);

/* It is freed: true when others have it open and it stays charged. */
bool ipc_stays(const allocation *a);
void ipc_close(allocation *a);

void managed_forget(allocation *a);

/* A block of a graph is freed, by a node or by the program; its addresses are the node's while there is one (`extra`). */
void graph_memory_free(allocation *a);
/* Gives back what no graph uses. */
void graph_memory_trim(device *dev);

/* Gives back what pools keep without need. */
void pool_trim_idle(device *dev);
void pool_trim_all(device *dev);
void pool_free(allocation *a);

#endif
