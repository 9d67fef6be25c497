/* Memory that other processes let this one use, and own memory that it lets others use. What counts where is decided in
 * shares.h; memory of a graphics library and the like, which comes by cuImportExternalMemory, counts in full. */
#include "blocks.h"
#include "contexts.h"
#include "hold.h"
#include "hooks.h"
#include "imports.h"
#include "log.h"
#include "pools.h"
#include "release.h"
#include "self.h"
#include "shares.h"
#include "spill.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void imports_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

uint64_t imports_key(const void *name, size_t size)
{
    const unsigned char *bytes = name;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash & ~SHARES_BY_FILE;
}

void imports_own(CUdeviceptr pointer, uint64_t key)
{
    struct block block, replaced;
    struct lamina_slot *slot = self_slot_if_any();
    const struct account *account = &facade_open()->account;
    if (slot == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (blocks_get(BLOCK_POINTER, pointer, &block) && (block.flags & BLOCK_SHARED) == 0) {
        struct lamina_share *share = shares_own(account, slot, key, block.device, block.bytes);
        if (share != NULL) {
            block.flags |= BLOCK_SHARED;
            block.extra = shares_index(account, share);
            blocks_put(&block, &replaced);
        }
    }
    pthread_mutex_unlock(&lock);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
    if (spilled(pointer)) {
        log_line(LOG_WARNING, "memory beyond the physical share cannot be exported to other processes");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    CUresult result = REAL(cuIpcGetMemHandle)(handle, pointer);
    if (result == CUDA_SUCCESS)
        imports_own(pointer, imports_key(handle, sizeof *handle));
    return result;
}

struct lamina_share *imports_use(struct lamina_slot *slot, uint64_t key, int device, uint64_t bytes)
{
    const struct account *account = &facade_open()->account;
    struct lamina_share *share;
    shares_use(account, slot, key, (uint32_t)device, bytes, &share);
    if (share != NULL)
        return share;
    pools_refresh();
    self_reclaim();
    shares_use(account, slot, key, (uint32_t)device, bytes, &share);
    if (share == NULL)
        hold_refused(device, account_held(account, (uint32_t)device) + bytes);
    return share;
}

/* The handle is open: books it, or one more use of what was open before. */
static CUresult opened(struct lamina_slot *slot, struct lamina_share *share, uint64_t key, struct block *block)
{
    const struct account *account = &facade_open()->account;
    struct block known, replaced;
    if (blocks_take(BLOCK_IMPORT, block->key, &known)) {
        if (share != NULL)
            shares_drop(account, slot, share);
        known.object = (char *)known.object + 1;
        blocks_put(&known, &replaced);
        return CUDA_SUCCESS;
    }
    CUdeviceptr base;
    size_t bytes = 0;
    if (share == NULL && REAL(cuMemGetAddressRange_v2)(&base, &bytes, block->key) == CUDA_SUCCESS)
        share = imports_use(slot, key, block->device, in_blocks(bytes));
    if (share != NULL) {
        block->extra = shares_index(account, share);
        if (blocks_put(block, &replaced))
            return CUDA_SUCCESS;
        shares_drop(account, slot, share);
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
    /* An allocation of this container is said to be used before it is, lest its owner go in between. */
    if (shares_owned(account, key, &device, &bytes)) {
        block->device = (uint8_t)device;
        share = imports_use(slot, key, (int)device, bytes);
        if (share == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = open(pointer, handle, flags);
    block->key = result == CUDA_SUCCESS ? *pointer : 0;
    if (result == CUDA_SUCCESS)
        return opened(slot, share, key, block);
    if (share != NULL)
        shares_drop(account, slot, share);
    return result;
}

static CUresult open_handle(opener open, CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    CUcontext context;
    int device = context_device(&context);
    if (device < 0 || pointer == NULL)
        return open(pointer, handle, flags);
    struct lamina_slot *slot = self_slot();
    if (slot == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    struct block block = {.context = (uint64_t)(uintptr_t)context, .class = BLOCK_IMPORT, .kind = LAMINA_DATA,
                          .device = (uint8_t)device};
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
            release(&block);
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
    struct block replaced, block = {.bytes = in_blocks(description->size), .context = (uint64_t)(uintptr_t)context,
                                    .class = BLOCK_EXTERNAL, .kind = LAMINA_DATA, .device = (uint8_t)device};
    CUresult result = hold(device, LAMINA_DATA, block.bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuImportExternalMemory)(memory, description);
    block.key = result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*memory : 0;
    if (result == CUDA_SUCCESS && !blocks_put(&block, &replaced)) {
        REAL(cuDestroyExternalMemory)(*memory);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        release(&block);
    return result;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
    struct block block;
    CUresult result = REAL(cuDestroyExternalMemory)(memory);
    if (result == CUDA_SUCCESS && blocks_take(BLOCK_EXTERNAL, (uint64_t)(uintptr_t)memory, &block))
        release(&block);
    return result;
}
