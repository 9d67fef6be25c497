/* Physical memory and the addresses it is mapped at. The memory of a handle is free again when the last reference to
 * it is released and its last mapping is gone, in whatever order.
 *
 * What processes of a container give each other as files counts once, as in shares.h. An import that is not recognised,
 * from outside or by another kind of handle, counts where it is imported, as far as it is mapped. */
#include "blocks.h"
#include "devices.h"
#include "file_marks.h"
#include "hold.h"
#include "hooks.h"
#include "imports.h"
#include "self.h"
#include "shares.h"
#include "vmm.h"

#include <pthread.h>
#include <stdlib.h>

struct object {
    int device;
    uint64_t bytes;   /* of one that is counted as it is mapped: as far as it ever was, since nobody tells its size */
    bool imported;
    unsigned exports;
    struct lamina_share *share; /* its owner's word, or this process's that it uses it; NULL: nobody knows it elsewhere */
    unsigned references, mappings;
};

/* No mapping is smaller or lies otherwise. */
enum { SMALLEST_MAPPING = 1 << 16 };

/* Held over the driver's calls: what one thread unmaps may be mapped again by another at once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void vmm_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static bool put(enum block_class class, uint64_t key, uint64_t bytes, struct object *object)
{
    struct block replaced, block = {.key = key, .bytes = bytes, .object = object, .class = class};
    return blocks_put(&block, &replaced);
}

static struct object *get(enum block_class class, uint64_t key)
{
    struct block block;
    return blocks_get(class, key, &block) ? block.object : NULL;
}

static void free_if_unused(struct object *object)
{
    if (object->references != 0 || object->mappings != 0)
        return;
    struct lamina_slot *slot = self_slot_if_any();
    if (object->share != NULL && slot != NULL)
        shares_drop(&facade_open()->account, slot, object->share);
    if (object->share == NULL || !object->imported)
        give_back(object->device, LAMINA_DATA, object->bytes);
    free(object);
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                       unsigned long long flags, int device)
{
    struct object *object = calloc(1, sizeof *object);
    CUresult result = object == NULL ? CUDA_ERROR_OUT_OF_MEMORY : hold(device, LAMINA_DATA, bytes);
    if (result != CUDA_SUCCESS) {
        free(object);
        return result;
    }
    *object = (struct object){.device = device, .bytes = bytes, .references = 1};
    result = REAL(cuMemCreate)(handle, bytes, prop, flags);
    if (result == CUDA_SUCCESS && !put(BLOCK_HANDLE, *handle, bytes, object)) {
        REAL(cuMemRelease)(*handle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        give_back(device, LAMINA_DATA, bytes);
        free(object);
    }
    return result;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
    int device = prop == NULL ? -1 : device_of_location(&prop->location);
    if (device < 0 || handle == NULL || bytes == 0)
        return REAL(cuMemCreate)(handle, bytes, prop, flags); /* host memory, or the driver's own answer */
    pthread_mutex_lock(&lock);
    CUresult result = create(handle, bytes, prop, flags, device);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct block block;
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemRelease)(handle);
    struct object *object = result == CUDA_SUCCESS ? get(BLOCK_HANDLE, handle) : NULL;
    if (object != NULL && --object->references == 0) {
        blocks_take(BLOCK_HANDLE, handle, &block);
        free_if_unused(object);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* What a mapping shows of an imported object beyond what was mapped of it so far. */
static uint64_t mapped_beyond(const struct object *object, size_t offset, size_t bytes)
{
    uint64_t end = bytes > UINT64_MAX - offset ? UINT64_MAX : (uint64_t)offset + bytes;
    return end > object->bytes ? end - object->bytes : 0;
}

/* A place for marks that no other owner of a slot in this container has, nor this one for anything else. */
static uint64_t new_key(const struct account *account, struct lamina_slot *slot)
{
    static uint64_t exported;
    uint64_t word = account_word(account, slot), number = word & 0xffff, generation = word >> 16 & 0xfffff;
    return number << 52 | generation << 32 | (exported++ & 0xfffffff) * FILE_MARKS;
}

static void exported(struct object *object, int file)
{
    struct lamina_slot *slot = self_slot_if_any();
    const struct account *account = &facade_open()->account;
    if (slot == NULL || object->imported)
        return;
    if (object->share == NULL)
        object->share = shares_own(account, slot, SHARES_BY_FILE | new_key(account, slot), (uint32_t)object->device,
                                   object->bytes);
    if (object->share != NULL)
        file_mark(file, object->share->key & ~SHARES_BY_FILE, object->exports++);
}

CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags)
{
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemExportToShareableHandle)(shared, handle, type, flags);
    struct object *object = result == CUDA_SUCCESS ? get(BLOCK_HANDLE, handle) : NULL;
    if (object != NULL && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        exported(object, *(int *)shared);
    pthread_mutex_unlock(&lock);
    return result;
}

static bool bears(uint64_t key, int file)
{
    return (key & SHARES_BY_FILE) != 0 && file_is_marked(file, key & ~SHARES_BY_FILE);
}

/* Says that this process uses what it is going to import, if the container knows it; said before it is so, lest the owner
 * go in between. */
static CUresult recognise(void *shared, CUmemAllocationHandleType type, struct object *found)
{
    struct lamina_slot *slot = self_slot();
    uint32_t device;
    if (slot == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_SUCCESS;
    uint64_t key = shares_find(&facade_open()->account, bears, (int)(intptr_t)shared, &device, &found->bytes);
    if (key == 0) {
        found->bytes = 0;
        return CUDA_SUCCESS;
    }
    found->share = imports_use(slot, key, (int)device, found->bytes);
    return found->share == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* True when the handle is booked, with what was found out about it. */
static bool imported(CUmemGenericAllocationHandle handle, const struct object *found)
{
    struct object *object = calloc(1, sizeof *object);
    if (object == NULL)
        return false;
    *object = *found;
    if (put(BLOCK_HANDLE, handle, 0, object))
        return true;
    free(object);
    return false;
}

static CUresult import(CUmemGenericAllocationHandle *handle, void *shared, CUmemAllocationHandleType type)
{
    CUmemAllocationProp prop;
    struct object found = {.imported = true, .references = 1};
    CUresult result = recognise(shared, type, &found);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMemImportFromShareableHandle)(handle, shared, type);
    bool ours = result == CUDA_SUCCESS && REAL(cuMemGetAllocationPropertiesFromHandle)(&prop, *handle) == CUDA_SUCCESS;
    found.device = ours ? device_of_location(&prop.location) : -1;
    struct object *known = found.device < 0 ? NULL : get(BLOCK_HANDLE, *handle);
    if (known != NULL)
        known->references++; /* of this process's own, or imported before */
    else if (found.device >= 0 && imported(*handle, &found))
        return CUDA_SUCCESS;
    else if (found.device >= 0) {
        REAL(cuMemRelease)(*handle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (found.share != NULL)
        shares_drop(&facade_open()->account, self_slot(), found.share);
    return result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared, CUmemAllocationHandleType type)
{
    if (facade_open() == NULL || handle == NULL)
        return REAL(cuMemImportFromShareableHandle)(handle, shared, type);
    pthread_mutex_lock(&lock);
    CUresult result = import(handle, shared, type);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    pthread_mutex_lock(&lock);
    struct object *object = get(BLOCK_HANDLE, handle);
    uint64_t more = object != NULL && object->imported && object->share == NULL ? mapped_beyond(object, offset, bytes) : 0;
    CUresult result = more > 0 ? hold(object->device, LAMINA_DATA, more) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        pthread_mutex_unlock(&lock);
        return result;
    }
    result = REAL(cuMemMap)(pointer, bytes, offset, handle, flags);
    if (result == CUDA_SUCCESS && more > 0)
        object->bytes += more;
    else if (more > 0)
        give_back(object->device, LAMINA_DATA, more);
    if (result == CUDA_SUCCESS && object != NULL && put(BLOCK_MAPPING, pointer, bytes, object))
        object->mappings++;
    pthread_mutex_unlock(&lock);
    return result;
}

static void unmapped(CUdeviceptr from, CUdeviceptr to)
{
    struct block block;
    while (from < to) {
        bool known = blocks_take(BLOCK_MAPPING, from, &block);
        if (known) {
            struct object *object = block.object;
            object->mappings--;
            free_if_unused(object);
        }
        from += known ? block.bytes : SMALLEST_MAPPING;
    }
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes)
{
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemUnmap)(pointer, bytes);
    if (result == CUDA_SUCCESS)
        unmapped(pointer, pointer + bytes);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemRetainAllocationHandle)(handle, address);
    struct object *object = result == CUDA_SUCCESS ? get(BLOCK_HANDLE, *handle) : NULL;
    CUdeviceptr base = (CUdeviceptr)(uintptr_t)address;
    size_t bytes;
    if (result == CUDA_SUCCESS && object == NULL) {
        /* All references were released; the mapping still knows what it maps. */
        REAL(cuMemGetAddressRange_v2)(&base, &bytes, base);
        object = get(BLOCK_MAPPING, base);
        if (object != NULL && !put(BLOCK_HANDLE, *handle, object->bytes, object))
            object = NULL;
    }
    if (object != NULL)
        object->references++;
    pthread_mutex_unlock(&lock);
    return result;
}
