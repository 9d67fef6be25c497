/* Allocations from a pool that another process exported. They count in that process's pool, and here once its export
 * entry is void, as in shared_allocations.h. They are freed like any others. */
#include "cuda/context_table.h"
#include "cuda/hooks.h"
#include "cuda/process.h"
#include "memory/blocks.h"
#include "memory/imports.h"
#include "memory/reserve.h"
#include "shared/shared_allocations.h"

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer)
{
    CUresult result = REAL(cuMemPoolExportPointer)(data, pointer);
    if (result == CUDA_SUCCESS)
        imports_note_export(pointer, imports_key(data, sizeof *data));
    return result;
}

static CUresult book_import(CUdeviceptr pointer, int device, const struct lamina_share *share)
{
    struct block replaced, block = {.key = pointer,
                                    .class = BLOCK_POINTER,
                                    .kind = LAMINA_DATA,
                                    .device = (uint8_t)device,
                                    .flags = BLOCK_SHARED};
    block.extra = shared_index(&facade_open()->account, share);
    return blocks_put(&block, &replaced) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult import_pointer(struct lamina_slot *slot, int device, CUdeviceptr *pointer, CUmemoryPool pool,
                               CUmemPoolPtrExportData *data)
{
    const struct account *account = &facade_open()->account;
    struct lamina_share *share = NULL;
    uint64_t key = imports_key(data, sizeof *data), bytes;
    uint32_t owned_on;
    bool owned = shared_find_export(account, key, &owned_on, &bytes);
    if (owned && (share = imports_note_use(slot, key, device = (int)owned_on, bytes)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemPoolImportPointer)(pointer, pool, data);
    if (result == CUDA_SUCCESS && !owned) {
        CUdeviceptr base;
        size_t size = 0;
        REAL(cuMemGetAddressRange_v2)(&base, &size, *pointer);
        share = imports_note_use(slot, key, device, whole_blocks(size));
    }
    bool imported = result == CUDA_SUCCESS;
    if (imported)
        result = share == NULL ? CUDA_ERROR_OUT_OF_MEMORY : book_import(*pointer, device, share);
    if (imported && result != CUDA_SUCCESS)
        REAL(cuMemFree_v2)(*pointer);
    if (result != CUDA_SUCCESS && share != NULL)
        shared_drop(account, slot, share);
    return result;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || pointer == NULL || data == NULL)
        return REAL(cuMemPoolImportPointer)(pointer, pool, data);
    struct lamina_slot *slot = process_slot();
    return slot == NULL ? CUDA_ERROR_OPERATING_SYSTEM : import_pointer(slot, device, pointer, pool, data);
}
