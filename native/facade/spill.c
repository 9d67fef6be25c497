#include "spill.h"

#include "hold.h"
#include "hooks.h"
#include "self.h"

#include <stdatomic.h>

static atomic_bool any; /* was made by this process, or by the one it was forked from */

static const struct lamina_limit *limit_of(int device)
{
    return &facade_open()->limits.devices[device];
}

bool spill_possible(int device)
{
    return limit_of(device)->physical_bytes < limit_of(device)->memory_bytes;
}

bool spill_due(int device)
{
    return spill_possible(device) &&
           account_pinned(&facade_open()->account, (uint32_t)device) > limit_of(device)->physical_bytes;
}

CUresult spill(CUdeviceptr *pointer, int device, size_t bytes, uint64_t taken)
{
    struct lamina_slot *slot = self_slot();
    if (!spill_possible(device) || slot == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* No advice where to put it: it goes where it is used, which for the program's "device memory" is the GPU. */
    CUresult result = REAL(cuMemAllocManaged)(pointer, bytes, CU_MEM_ATTACH_GLOBAL);
    if (result != CUDA_SUCCESS)
        return result;
    account_spill(&facade_open()->account, slot, (uint32_t)device, taken);
    any = true;
    return CUDA_SUCCESS;
}

void spill_undo(int device, uint64_t taken)
{
    struct lamina_slot *slot = self_slot_if_any();
    if (slot != NULL)
        account_unspill(&facade_open()->account, slot, (uint32_t)device, taken);
}

bool spilled(CUdeviceptr address)
{
    CUdeviceptr base;
    size_t bytes;
    struct block block;
    return atomic_load_explicit(&any, memory_order_relaxed) &&
           REAL(cuMemGetAddressRange_v2)(&base, &bytes, address) == CUDA_SUCCESS &&
           blocks_get(BLOCK_POINTER, base, &block) && (block.flags & BLOCK_SPILLED) != 0;
}
