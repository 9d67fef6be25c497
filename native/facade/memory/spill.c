#include "memory/spill.h"

#include "cuda/hooks.h"
#include "cuda/process.h"
#include "memory/reserve.h"
#include "shared/assertion.h"

#include <stdatomic.h>

static atomic_bool any; /* whether this process, or the one that it was forked from, has such memory */

static const struct lamina_limit *limit_of(int device)
{
    ASSERT(device >= 0 && device < LAMINA_MAX_DEVICES);
    return &facade_open()->limits.devices[device];
}

bool spill_possible(int device)
{
    return limit_of(device)->physical_bytes < limit_of(device)->memory_bytes;
}

bool spill_needed(int device)
{
    return spill_possible(device) &&
           account_pinned(&facade_open()->account, (uint32_t)device) > limit_of(device)->physical_bytes;
}

CUresult spill_allocate(CUdeviceptr *pointer, int device, size_t bytes, uint64_t reserved)
{
    struct lamina_slot *slot = process_slot();
    if (!spill_possible(device) || slot == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* No advice on where to place it: it moves to where it is used, which for device memory is the GPU. */
    CUresult result = REAL(cuMemAllocManaged)(pointer, bytes, CU_MEM_ATTACH_GLOBAL);
    if (result != CUDA_SUCCESS)
        return result;
    account_spill(slot, (uint32_t)device, reserved);
    any = true;
    return CUDA_SUCCESS;
}

void spill_undo(int device, uint64_t reserved)
{
    struct lamina_slot *slot = process_slot_if_any();
    if (slot != NULL)
        account_unspill(slot, (uint32_t)device, reserved);
}

bool spill_contains(CUdeviceptr address)
{
    CUdeviceptr base;
    size_t bytes;
    struct block block;
    /* Relaxed: a program orders the use of an address after its allocation, and the table of blocks has locks. */
    return atomic_load_explicit(&any, memory_order_relaxed) &&
           REAL(cuMemGetAddressRange_v2)(&base, &bytes, address) == CUDA_SUCCESS &&
           blocks_get(BLOCK_POINTER, base, &block) && (block.flags & BLOCK_SPILLED) != 0;
}
