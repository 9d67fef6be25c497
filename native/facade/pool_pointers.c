/* Allocations from a pool that another process exported: they count in its pool, and here once that word is void, as
 * in shares.h. They are freed like any others. */
#include "blocks.h"
#include "contexts.h"
#include "hold.h"
#include "hooks.h"
#include "imports.h"
#include "memory.h"
#include "self.h"
#include "shares.h"

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer)
{
    CUresult result = REAL(cuMemPoolExportPointer)(data, pointer);
    if (result == CUDA_SUCCESS)
        imports_own(pointer, imports_key(data, sizeof *data));
    return result;
}

static CUresult booked(CUdeviceptr pointer, int device, const struct lamina_share *share)
{
    struct block replaced, block = {.key = pointer, .class = BLOCK_POINTER, .kind = LAMINA_DATA,
                                    .device = (uint8_t)device, .flags = BLOCK_SHARED};
    block.extra = shares_index(&facade_open()->account, share);
    return blocks_put(&block, &replaced) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult import(struct lamina_slot *slot, int device, CUdeviceptr *pointer, CUmemoryPool pool,
                       CUmemPoolPtrExportData *data)
{
    const struct account *account = &facade_open()->account;
    struct lamina_share *share = NULL;
    uint64_t key = imports_key(data, sizeof *data), bytes;
    uint32_t owned_on;
    bool owned = shares_owned(account, key, &owned_on, &bytes);
    if (owned && (share = imports_use(slot, key, device = (int)owned_on, bytes)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemPoolImportPointer)(pointer, pool, data);
    if (result == CUDA_SUCCESS && !owned) {
        CUdeviceptr base;
        size_t size = 0;
        REAL(cuMemGetAddressRange_v2)(&base, &size, *pointer);
        share = imports_use(slot, key, device, in_blocks(size));
    }
    bool imported = result == CUDA_SUCCESS;
    if (imported)
        result = share == NULL ? CUDA_ERROR_OUT_OF_MEMORY : booked(*pointer, device, share);
    if (imported && result != CUDA_SUCCESS)
        REAL(cuMemFree_v2)(*pointer);
    if (result != CUDA_SUCCESS && share != NULL)
        shares_drop(account, slot, share);
    return result;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || pointer == NULL || data == NULL)
        return REAL(cuMemPoolImportPointer)(pointer, pool, data);
    struct lamina_slot *slot = self_slot();
    return slot == NULL ? CUDA_ERROR_OPERATING_SYSTEM : import(slot, device, pointer, pool, data);
}
