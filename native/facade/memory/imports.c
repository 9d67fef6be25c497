/* Memory that other processes let this one use, and memory of this process that it lets others use. What counts where
 * is decided in shared_allocations.h. Memory that comes by cuImportExternalMemory, from a graphics library for example,
 * counts in full.
 *
 * Example: process A allocates 10 MiB and calls cuIpcGetMemHandle. The 64 bytes of the handle are hashed to a key, and
 * A adds an export entry (key, 10 MiB). Process B calls cuIpcOpenMemHandle with these bytes:
 *
 *   1. B computes the same key, finds A's entry, and so knows device and size before it asks the driver.
 *   2. B adds a use entry. A's entry is valid, so the use costs nothing. If A freed its memory between 1 and 3, B's use
 *      entry would count the 10 MiB, and they are never missing.
 *   3. The driver opens the handle. B records a block BLOCK_IMPORT with the number of its entry, so that it can remove
 *      the entry when it closes the handle. If the driver refuses, B removes the entry at once.
 *
 * If B opens the same handle again, the driver returns the same address: B only counts the second use in the block. A
 * handle from outside the container has no export entry; its size is known only after step 3, and it is closed again
 * when it does not fit. */
#include "memory/imports.h"
#include "cuda/context_table.h"
#include "cuda/hooks.h"
#include "cuda/process.h"
#include "memory/blocks.h"
#include "memory/lending.h"
#include "memory/pools.h"
#include "memory/release.h"
#include "memory/reserve.h"
#include "memory/spill.h"
#include "shared/assertion.h"
#include "shared/log.h"
#include "shared/shared_allocations.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void imports_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

uint64_t imports_key(const void *handle, size_t size)
{
    const unsigned char *bytes = handle;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash & ~SHARED_BY_FILE;
}

/* The driver exports the allocation that the address is in. */
static bool find_containing(CUdeviceptr pointer, struct block *block)
{
    CUdeviceptr base = pointer;
    size_t size = 0;
    if (blocks_get(BLOCK_POINTER, pointer, block))
        return true;
    return REAL(cuMemGetAddressRange_v2)(&base, &size, pointer) == CUDA_SUCCESS &&
           blocks_get(BLOCK_POINTER, base, block);
}

void imports_note_export(CUdeviceptr pointer, uint64_t key)
{
    struct block block, replaced;
    struct lamina_slot *slot = process_slot_if_any();
    const struct account *account = &facade_open()->account;
    if (slot == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (find_containing(pointer, &block) && (block.flags & BLOCK_SHARED) == 0) {
        /* Of a small allocation, other processes keep the whole block. */
        uint64_t bytes = whole_blocks(block.bytes);
        struct lamina_share *share = shared_export(account, slot, key, block.device, bytes);
        if (share != NULL) {
            block.flags |= BLOCK_SHARED;
            block.extra = shared_index(account, share);
            blocks_put(&block, &replaced);
        }
    }
    pthread_mutex_unlock(&lock);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
    if (spill_contains(pointer)) {
        log_line(LOG_WARNING, "memory beyond the physical share cannot be exported to other processes");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    CUresult result = REAL(cuIpcGetMemHandle)(handle, pointer);
    if (result == CUDA_SUCCESS)
        imports_note_export(pointer, imports_key(handle, sizeof *handle));
    return result;
}

struct lamina_share *imports_note_use(struct lamina_slot *slot, uint64_t key, int device, uint64_t bytes)
{
    const struct account *account = &facade_open()->account;
    struct lamina_share *share;
    shared_use(account, slot, key, (uint32_t)device, bytes, &share);
    if (share != NULL)
        return share;
    pools_refresh();
    process_reclaim_dead();
    shared_use(account, slot, key, (uint32_t)device, bytes, &share);
    if (share == NULL)
        report_refusal(device, account_held(account, (uint32_t)device) + bytes);
    return share;
}

/* The handle is open: records it, or one more use of a handle that was open before. */
static CUresult record_open(struct lamina_slot *slot, struct lamina_share *share, uint64_t key, struct block *block)
{
    const struct account *account = &facade_open()->account;
    struct block known, replaced;
    if (blocks_take(BLOCK_IMPORT, block->key, &known)) {
        if (share != NULL)
            shared_drop(account, slot, share);
        ASSERT(known.class == BLOCK_IMPORT);
        known.object = (char *)known.object + 1;
        blocks_put(&known, &replaced);
        return CUDA_SUCCESS;
    }
    CUdeviceptr base;
    size_t bytes = 0;
    if (share == NULL && REAL(cuMemGetAddressRange_v2)(&base, &bytes, block->key) == CUDA_SUCCESS)
        share = imports_note_use(slot, key, block->device, whole_blocks(bytes));
    if (share != NULL) {
        block->extra = shared_index(account, share);
        if (blocks_put(block, &replaced))
            return CUDA_SUCCESS;
        shared_drop(account, slot, share);
    }
    REAL(cuIpcCloseMemHandle)(block->key);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

typedef CUresult (*opener)(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags);

static CUresult open_counted(opener open, struct lamina_slot *slot, CUdeviceptr *pointer, CUipcMemHandle handle,
                             unsigned int flags, struct block *block)
{
    const struct account *account = &facade_open()->account;
    struct lamina_share *share = NULL;
    uint64_t key = imports_key(&handle, sizeof handle), bytes;
    uint32_t device;
    /* The use entry comes before the driver's call, because the owner may free the memory in between. */
    if (shared_find_export(account, key, &device, &bytes)) {
        block->device = (uint8_t)device;
        share = imports_note_use(slot, key, (int)device, bytes);
        if (share == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = open(pointer, handle, flags);
    block->key = result == CUDA_SUCCESS ? *pointer : 0;
    if (result == CUDA_SUCCESS)
        return record_open(slot, share, key, block);
    if (share != NULL)
        shared_drop(account, slot, share);
    return result;
}

static CUresult open_handle(opener open, CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || pointer == NULL)
        return open(pointer, handle, flags);
    struct lamina_slot *slot = process_slot();
    if (slot == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    struct block block = {
        .context = (uint64_t)(uintptr_t)context, .class = BLOCK_IMPORT, .kind = LAMINA_DATA, .device = (uint8_t)device};
    pthread_mutex_lock(&lock);
    CUresult result = open_counted(open, slot, pointer, handle, flags, &block);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    return open_handle(REAL(cuIpcOpenMemHandle), pointer, handle, flags);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    return open_handle(REAL(cuIpcOpenMemHandle_v2), pointer, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
    struct block block, replaced;
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuIpcCloseMemHandle)(pointer);
    if (result == CUDA_SUCCESS && blocks_take(BLOCK_IMPORT, pointer, &block)) {
        if (block.object == NULL)
            release_block(&block);
        else {
            block.object = (char *)block.object - 1;
            blocks_put(&block, &replaced);
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuImportExternalMemory(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || memory == NULL || description == NULL)
        return REAL(cuImportExternalMemory)(memory, description);
    struct block replaced, block = {.bytes = whole_blocks(description->size),
                                    .context = (uint64_t)(uintptr_t)context,
                                    .class = BLOCK_EXTERNAL,
                                    .kind = LAMINA_DATA,
                                    .device = (uint8_t)device};
    CUresult result = reserve_fixed(device, LAMINA_DATA, block.bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuImportExternalMemory)(memory, description);
    block.key = result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*memory : 0;
    if (result == CUDA_SUCCESS && !blocks_put(&block, &replaced)) {
        REAL(cuDestroyExternalMemory)(*memory);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        release_block(&block);
    return result;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
    struct block block;
    CUresult result = REAL(cuDestroyExternalMemory)(memory);
    if (result == CUDA_SUCCESS && blocks_take(BLOCK_EXTERNAL, (uint64_t)(uintptr_t)memory, &block))
        release_block(&block);
    return result;
}
