#include "memory/spill.h"

#include "cuda/devices.h"
#include "cuda/hooks.h"
#include "cuda/process.h"
#include "memory/reserve.h"
#include "shared/assertion.h"
#include "shared/live_limits.h"

#include <stdatomic.h>

#define MAX_KEPT_FREE (UINT64_C(256) << 20)

enum { CONCURRENT_MANAGED_ACCESS = 89 };

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

/* What of the physical share is kept for memory that cannot be managed. */
static uint64_t kept_free(const struct account *account, int device, uint64_t physical)
{
    if (!may_borrow(account, (uint32_t)device) || live_allowed(account, (uint32_t)device) <= physical)
        return 0;
    return physical / 8 < MAX_KEPT_FREE ? physical / 8 : MAX_KEPT_FREE;
}

bool spill_needed(int device)
{
    const struct account *account = &facade_open()->account;
    if (!spill_possible(device))
        return false;
    uint64_t physical = live_physical(account, (uint32_t)device);
    return account_pinned(account, (uint32_t)device) > physical - kept_free(account, device, physical);
}

/* Whether the driver moves managed memory out for others. Some do not, as on Windows; there memory is not lent. */
static bool moves_out(int device)
{
    int ordinal = device_ordinal(device), moves = 0;
    return !may_borrow(&facade_open()->account, (uint32_t)device) ||
           (REAL(cuDeviceGetAttribute)(&moves, CONCURRENT_MANAGED_ACCESS, ordinal) == CUDA_SUCCESS && moves != 0);
}

CUresult spill_allocate(CUdeviceptr *pointer, int device, size_t bytes, uint64_t reserved)
{
    struct lamina_slot *slot = process_slot();
    if (!spill_possible(device) || slot == NULL || !moves_out(device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* No advice on where to place it: it moves to where it is used, which for device memory is the GPU. */
    CUresult result = REAL(cuMemAllocManaged)(pointer, bytes, CU_MEM_ATTACH_GLOBAL);
    if (result != CUDA_SUCCESS)
        return result;
    account_spill(slot, (uint32_t)device, reserved);
    any = true;
    return CUDA_SUCCESS;
}

void spill_undo(int device, uint64_t reserved, uint64_t hosted)
{
    struct lamina_slot *slot = process_slot_if_any();
    if (slot != NULL)
        account_unspill(slot, (uint32_t)device, reserved, hosted);
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
