/* Virtual memory management: separate addresses and memory, in granules of 2 MiB. Memory is charged when it is created,
 * mapped or not. Data belongs to the addresses: memory that is mapped twice has two contents. */
#ifndef SIMGPU_VMM_H
#define SIMGPU_VMM_H

#include "core/imports.h"
#include "cuda/driver.h"

struct vmm_memory {
    uint32_t magic, references;
    struct device *dev;
    size_t size;
    uint32_t mib;
    CUmemAllocationProp prop;
    struct imported what; /* number 0: never exported; an owner other than this process: imported */
};

/* The memory of a handle, or NULL. */
struct vmm_memory *vmm_find(CUmemGenericAllocationHandle handle);
CUmemGenericAllocationHandle vmm_handle(struct vmm_memory *memory);
/* Fills the record of new or imported memory, with one reference. */
void vmm_fill(struct vmm_memory *memory, struct device *dev, size_t size, const CUmemAllocationProp *prop);

#endif
