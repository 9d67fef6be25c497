/* Pinned host memory. Host addresses and device addresses of it are the same. */
#include "host.h"

#include <stdlib.h>

typedef struct range {
    char *start;
    size_t size;
    unsigned int flags;
    bool ours; /* allocated here, not only registered */
    struct range *next;
} range;

static range *ranges;
static uint32_t ranges_generation;

/* With the lock held. */
static range *find(const void *at) {
    if (ranges_generation != driver.generation) return NULL;
    for (range *r = ranges; r != NULL; r = r->next)
        if ((const char *)at >= r->start && (const char *)at < r->start + r->size) return r;
    return NULL;
}

bool host_known(const void *at) {
    driver_lock();
    bool known = find(at) != NULL;
    driver_unlock();
    return known;
}

static bool keep(void *start, size_t size, unsigned int flags, bool ours) {
    range *r = malloc(sizeof *r);
    if (r == NULL) return false;
    driver_lock();
    if (ranges_generation != driver.generation) ranges = NULL;
    ranges_generation = driver.generation;
    *r = (range){.start = start, .size = size, .flags = flags, .ours = ours, .next = ranges};
    ranges = r;
    driver_unlock();
    return true;
}

/* Forgets the range that starts here; false when there is none of that sort. */
static bool forget(void *start, bool ours) {
    bool found = false;
    driver_lock();
    range *r = find(start);
    if (r != NULL && r->start == start && r->ours == ours) {
        for (range **at = &ranges; *at != NULL; at = &(*at)->next)
            if (*at == r) {
                *at = r->next;
                break;
            }
        free(r);
        found = true;
    }
    driver_unlock();
    return found;
}

SIM_API CUresult cuMemHostAlloc(void **out, size_t size, unsigned int flags) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (out == NULL || size == 0 || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    void *at = NULL;
    if (posix_memalign(&at, 4096, size) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!keep(at, size, flags, true)) {
        free(at);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = at;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemAllocHost_v2(void **out, size_t size) { return cuMemHostAlloc(out, size, 0); }

SIM_API CUresult cuMemFreeHost(void *at) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS || at == NULL) return result;
    if (!forget(at, true)) return CUDA_ERROR_INVALID_VALUE;
    free(at);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemHostRegister_v2(void *at, size_t size, unsigned int flags) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (at == NULL || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (host_known(at)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return keep(at, size, flags, false) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuMemHostUnregister(void *at) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    return forget(at, false) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

SIM_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *at, unsigned int flags) {
    CUcontext ctx;
    CUresult result = context_needed(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (out == NULL || flags != 0 || !host_known(at)) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)at;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuMemHostGetFlags(unsigned int *flags, void *at) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    driver_lock();
    range *r = find(at);
    if (r != NULL && flags != NULL) *flags = r->flags;
    driver_unlock();
    return r != NULL && flags != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
