/* Physical memory and the addresses it is mapped at. The memory of a handle is free again when the last reference to
 * it is released and its last mapping is gone, in whatever order. */
#include "blocks.h"
#include "devices.h"
#include "hold.h"
#include "hooks.h"
#include "vmm.h"

#include <pthread.h>
#include <stdlib.h>

struct object {
    int device;
    uint64_t bytes;   /* of an imported one: as far as it was ever mapped, since nobody tells its size */
    bool imported;
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

/* It counts here too, by what is mapped: nothing tells whether its owner is in this container, or alive. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared, CUmemAllocationHandleType type)
{
    CUmemAllocationProp prop;
    pthread_mutex_lock(&lock);
    CUresult result = REAL(cuMemImportFromShareableHandle)(handle, shared, type);
    bool ours = result == CUDA_SUCCESS && REAL(cuMemGetAllocationPropertiesFromHandle)(&prop, *handle) == CUDA_SUCCESS;
    int device = ours ? device_of_location(&prop.location) : -1;
    struct object *object = device < 0 ? NULL : get(BLOCK_HANDLE, *handle);
    if (object != NULL)
        object->references++; /* of this process's own, or imported before */
    else if (device >= 0) {
        object = calloc(1, sizeof *object);
        if (object != NULL)
            *object = (struct object){.device = device, .imported = true, .references = 1};
        if (object == NULL || !put(BLOCK_HANDLE, *handle, 0, object)) {
            REAL(cuMemRelease)(*handle);
            free(object);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    pthread_mutex_lock(&lock);
    struct object *object = get(BLOCK_HANDLE, handle);
    uint64_t more = object != NULL && object->imported ? mapped_beyond(object, offset, bytes) : 0;
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
