/* Physical memory and the addresses it is mapped at. The memory of a handle is free when its last reference is released
 * and its last mapping is gone, in whatever order.
 *
 * Memory that processes of a container give each other as files counts once, as in shared_allocations.h. An import that
 * is not recognized, from outside or by another kind of handle, counts where it is imported, as far as it is mapped. */
#include "memory/vmm.h"
#include "cuda/devices.h"
#include "cuda/hooks.h"
#include "cuda/process.h"
#include "memory/blocks.h"
#include "memory/file_marks.h"
#include "memory/imports.h"
#include "memory/lending.h"
#include "memory/reserve.h"
#include "shared/assertion.h"
#include "shared/shared_allocations.h"

#include <pthread.h>
#include <stdlib.h>

struct object {
    int device;
    uint64_t bytes; /* of an import of unknown size: the end of its farthest mapping */
    bool imported;
    unsigned exports;
    struct lamina_share *share; /* its export or use entry; NULL: it is not known to be shared */
    uint64_t key;               /* of its export entry */
    unsigned references, mappings;
};

/* The smallest size and alignment of a mapping. */
enum { MIN_MAPPING = 1 << 16 };

/* Held during the driver's calls: another thread may map again at once what one thread unmaps. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void vmm_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static bool put_object(enum block_class class, uint64_t key, uint64_t bytes, struct object *object)
{
    struct block replaced, block = {.key = key, .bytes = bytes, .object = object, .class = class};
    return blocks_put(&block, &replaced);
}

static struct object *get_object(enum block_class class, uint64_t key)
{
    struct block block;
    return blocks_get(class, key, &block) ? block.object : NULL;
}

static void free_if_unused(struct object *object)
{
    if (object->references != 0 || object->mappings != 0)
        return;
    ASSERT(object->device >= 0 && object->device < LAMINA_MAX_DEVICES);
    struct lamina_slot *slot = process_slot_if_any();
    if (object->share != NULL && slot != NULL)
        shared_drop(&facade_open()->account, slot, object->share);
    if (object->share == NULL || !object->imported)
        unreserve(object->device, LAMINA_DATA, object->bytes);
    free(object);
}

static CUresult create_memory(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                              unsigned long long flags, int device)
{
    uint64_t since = 0;
    struct object *object = calloc(1, sizeof *object);
    CUresult result = object == NULL ? CUDA_ERROR_OUT_OF_MEMORY : reserve_fixed(device, LAMINA_DATA, bytes);
    if (result != CUDA_SUCCESS) {
        free(object);
        return result;
    }
    *object = (struct object){.device = device, .bytes = bytes, .references = 1};
    do
        result = REAL(cuMemCreate)(handle, bytes, prop, flags);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && lending_wait(device, &since));
    if (result == CUDA_SUCCESS && !put_object(BLOCK_HANDLE, *handle, bytes, object)) {
        REAL(cuMemRelease)(*handle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        unreserve(device, LAMINA_DATA, bytes);
        free(object);
    }
    return result;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
    int device = prop == NULL ? -1 : device_of_location(&prop->location);
    if (device < 0 || handle == NULL || bytes == 0)
        return REAL(cuMemCreate)(handle, bytes, prop, flags); /* host memory, or an error */
    pthread_mutex_lock(&lock);
    CUresult result = create_memory(handle, bytes, prop, flags, device);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct block block;
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemRelease)(handle);
    struct object *object = result == CUDA_SUCCESS ? get_object(BLOCK_HANDLE, handle) : NULL;
    ASSERT(object == NULL || object->references > 0);
    if (object != NULL && --object->references == 0) {
        blocks_take(BLOCK_HANDLE, handle, &block);
        free_if_unused(object);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* How much of an imported object a mapping shows beyond what was mapped of it before. */
static uint64_t mapped_beyond(const struct object *object, size_t offset, size_t bytes)
{
    uint64_t end = bytes > UINT64_MAX - offset ? UINT64_MAX : (uint64_t)offset + bytes;
    return end > object->bytes ? end - object->bytes : 0;
}

/* A key for marks that no other slot owner in this container uses, and that this one uses only once. */
static uint64_t new_key(const struct account *account, struct lamina_slot *slot)
{
    static uint64_t exported;
    uint64_t word = account_holder(account, slot), number = word & 0xffff, generation = word >> 16 & 0xfffff;
    return number << 52 | generation << 32 | (exported++ & 0xfffffff) * FILE_MARKS;
}

static void note_export(struct object *object, int file)
{
    struct lamina_slot *slot = process_slot_if_any();
    const struct account *account = &facade_open()->account;
    if (slot == NULL || object->imported)
        return;
    if (object->share == NULL) {
        object->key = new_key(account, slot);
        object->share =
            shared_export(account, slot, SHARED_BY_FILE | object->key, (uint32_t)object->device, object->bytes);
    }
    if (object->share != NULL)
        file_mark(file, object->key, object->exports++);
}

CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags)
{
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemExportToShareableHandle)(shared, handle, type, flags);
    struct object *object = result == CUDA_SUCCESS ? get_object(BLOCK_HANDLE, handle) : NULL;
    if (object != NULL && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        note_export(object, *(int *)shared);
    pthread_mutex_unlock(&lock);
    return result;
}

static bool is_marked(uint64_t key, int file)
{
    return (key & SHARED_BY_FILE) != 0 && file_is_marked(file, key & ~SHARED_BY_FILE);
}

/* Adds a use entry for what this process is going to import, if the container knows it. This comes before the import,
 * because the owner may free the memory in between. */
static CUresult recognize_own(void *shared, CUmemAllocationHandleType type, struct object *found)
{
    struct lamina_slot *slot = process_slot();
    uint32_t device;
    if (slot == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_SUCCESS;
    uint64_t key = shared_find(&facade_open()->account, is_marked, (int)(intptr_t)shared, &device, &found->bytes);
    if (key == 0) {
        found->bytes = 0;
        return CUDA_SUCCESS;
    }
    found->share = imports_note_use(slot, key, (int)device, found->bytes);
    return found->share == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Records the handle with what is known about it. False when there is no memory for it. */
static bool record_import(CUmemGenericAllocationHandle handle, const struct object *found)
{
    struct object *object = calloc(1, sizeof *object);
    if (object == NULL)
        return false;
    *object = *found;
    if (put_object(BLOCK_HANDLE, handle, 0, object))
        return true;
    free(object);
    return false;
}

static CUresult import_memory(CUmemGenericAllocationHandle *handle, void *shared, CUmemAllocationHandleType type)
{
    CUmemAllocationProp prop;
    struct object found = {.imported = true, .references = 1};
    CUresult result = recognize_own(shared, type, &found);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMemImportFromShareableHandle)(handle, shared, type);
    bool ours = result == CUDA_SUCCESS && REAL(cuMemGetAllocationPropertiesFromHandle)(&prop, *handle) == CUDA_SUCCESS;
    found.device = ours ? device_of_location(&prop.location) : -1;
    struct object *known = found.device < 0 ? NULL : get_object(BLOCK_HANDLE, *handle);
    if (known != NULL)
        known->references++; /* this process's own, or imported before */
    else if (found.device >= 0 && record_import(*handle, &found))
        return CUDA_SUCCESS;
    else if (found.device >= 0) {
        REAL(cuMemRelease)(*handle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct lamina_slot *slot = process_slot_if_any();
    if (found.share != NULL && slot != NULL)
        shared_drop(&facade_open()->account, slot, found.share);
    return result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
                                        CUmemAllocationHandleType type)
{
    if (facade_open() == NULL || handle == NULL)
        return REAL(cuMemImportFromShareableHandle)(handle, shared, type);
    pthread_mutex_lock(&lock);
    CUresult result = import_memory(handle, shared, type);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    pthread_mutex_lock(&lock);
    struct object *object = get_object(BLOCK_HANDLE, handle);
    uint64_t more =
        object != NULL && object->imported && object->share == NULL ? mapped_beyond(object, offset, bytes) : 0;
    CUresult result = more > 0 ? reserve_fixed(object->device, LAMINA_DATA, more) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        pthread_mutex_unlock(&lock);
        return result;
    }
    result = REAL(cuMemMap)(pointer, bytes, offset, handle, flags);
    if (result == CUDA_SUCCESS && more > 0)
        object->bytes += more;
    else if (more > 0)
        unreserve(object->device, LAMINA_DATA, more);
    if (result == CUDA_SUCCESS && object != NULL && put_object(BLOCK_MAPPING, pointer, bytes, object))
        object->mappings++;
    pthread_mutex_unlock(&lock);
    return result;
}

static void note_unmapped(CUdeviceptr from, CUdeviceptr to)
{
    struct block block;
    while (from < to) {
        bool known = blocks_take(BLOCK_MAPPING, from, &block);
        if (known) {
            struct object *object = block.object;
            ASSERT(object->mappings > 0);
            object->mappings--;
            free_if_unused(object);
        }
        ASSERT(!known || block.bytes > 0);
        from += known ? block.bytes : MIN_MAPPING;
    }
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes)
{
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemUnmap)(pointer, bytes);
    if (result == CUDA_SUCCESS)
        note_unmapped(pointer, pointer + bytes);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemRetainAllocationHandle)(handle, address);
    struct object *object = result == CUDA_SUCCESS ? get_object(BLOCK_HANDLE, *handle) : NULL;
    CUdeviceptr base = (CUdeviceptr)(uintptr_t)address;
    size_t bytes;
    if (result == CUDA_SUCCESS && object == NULL) {
        /* All references were released; the mapping still knows what it maps. */
        REAL(cuMemGetAddressRange_v2)(&base, &bytes, base);
        object = get_object(BLOCK_MAPPING, base);
        if (object != NULL && !put_object(BLOCK_HANDLE, *handle, object->bytes, object))
            object = NULL;
    }
    if (object != NULL)
        object->references++;
    pthread_mutex_unlock(&lock);
    return result;
}
