#include "cuda/host.h"

#include "cuda/context.h"
#include "cuda/driver.h"

#include <stdlib.h>

struct range {
    char *start;
    size_t size;
    unsigned int flags;
    bool ours; /* allocated here, not only registered */
    struct range *next;
};

static struct range *ranges;

void host_after_fork(void)
{
    ranges = NULL;
}

/* Called with the lock held. */
static struct range *find_range(const void *at)
{
    for (struct range *r = ranges; r != NULL; r = r->next)
        if ((const char *)at >= r->start && (const char *)at < r->start + r->size)
            return r;
    return NULL;
}

size_t host_length(const void *at)
{
    driver_lock();
    struct range *r = find_range(at);
    size_t length = r != NULL ? (size_t)(r->start + r->size - (const char *)at) : 0;
    driver_unlock();
    return length;
}

bool host_is_known(const void *at)
{
    return host_length(at) != 0;
}

static CUresult add_range(void *start, size_t size, unsigned int flags, bool ours)
{
    struct range *r = malloc(sizeof *r);
    if (r == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    driver_lock();
    *r = (struct range){.start = start, .size = size, .flags = flags, .ours = ours, .next = ranges};
    ranges = r;
    driver_unlock();
    return CUDA_SUCCESS;
}

/* Removes the range that starts here. False when there is none of this kind. */
static bool remove_range(void *start, bool ours)
{
    driver_lock();
    struct range **at = &ranges;
    while (*at != NULL && ((*at)->start != start || (*at)->ours != ours))
        at = &(*at)->next;
    struct range *found = *at;
    if (found != NULL)
        *at = found->next;
    driver_unlock();
    free(found);
    return found != NULL;
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned int flags)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (out == NULL || size == 0 || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    void *at = NULL;
    if (posix_memalign(&at, 4096, size) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = add_range(at, size, flags, true);
    if (result == CUDA_SUCCESS)
        *out = at;
    else
        free(at);
    return result;
}

CUresult cuMemAllocHost_v2(void **out, size_t size)
{
    return cuMemHostAlloc(out, size, 0);
}

CUresult cuMemFreeHost(void *at)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (at == NULL)
        return CUDA_SUCCESS;
    if (!remove_range(at, true))
        return CUDA_ERROR_INVALID_VALUE;
    free(at);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *at, size_t size, unsigned int flags)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (at == NULL || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (host_is_known(at))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return add_range(at, size, flags, false);
}

CUresult cuMemHostUnregister(void *at)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    return remove_range(at, false) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *at, unsigned int flags)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    if (out == NULL || flags != 0 || !host_is_known(at))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)at;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *at)
{
    TRY(driver_check_ready());
    driver_lock();
    struct range *r = find_range(at);
    if (r != NULL && flags != NULL)
        *flags = r->flags;
    driver_unlock();
    return r != NULL && flags != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
