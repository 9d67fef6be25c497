#include "cuda/place.h"

#include "cuda/array.h"
#include "cuda/driver.h"
#include "cuda/host.h"

#include <string.h>

static CUresult place_of_pinned(const void *at, struct place *p)
{
    *p = place_of_host(at);
    p->length = host_length(at);
    return p->length != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult place_of_device(CUdeviceptr at, struct place *p)
{
    driver_lock();
    struct allocation *a = memory_find(at);
    driver_unlock();
    if (a == NULL)
        return place_of_pinned((void *)(uintptr_t)at, p);
    size_t offset = at - a->start;
    size_t stored = a->kind == KIND_MANAGED ? a->size : STORED_BYTES;
    *p = (struct place){.at = (char *)(uintptr_t)at,
                        .length = a->size - offset,
                        .stored = stored > offset ? stored - offset : 0,
                        .of = a};
    return CUDA_SUCCESS;
}

CUresult place_of_array(CUarray array, size_t offset, struct place *p)
{
    CUdeviceptr start = array_start(array);
    return start != 0 ? place_of_device(start + offset, p) : CUDA_ERROR_INVALID_HANDLE;
}

struct place place_of_host(const void *at)
{
    return (struct place){.at = (char *)(uintptr_t)at, .length = SIZE_MAX, .stored = SIZE_MAX};
}

struct place place_of_unified(CUdeviceptr at)
{
    struct place p;
    return place_of_device(at, &p) == CUDA_SUCCESS ? p : place_of_host((void *)(uintptr_t)at);
}

CUresult place_move(struct place *p, size_t offset)
{
    if (offset > p->length)
        return CUDA_ERROR_INVALID_VALUE;
    p->at += offset;
    p->length -= offset;
    p->stored = p->stored > offset ? p->stored - offset : 0;
    return CUDA_SUCCESS;
}

CUresult place_copy(struct place to, struct place from, size_t bytes)
{
    if (bytes > to.length || bytes > from.length || to.at == NULL || from.at == NULL)
        return bytes == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    size_t kept = bytes < to.stored ? bytes : to.stored;
    size_t real = kept < from.stored ? kept : from.stored;
    /* Copying untouched memory onto untouched memory would only make pages of zeros. */
    bool nothing = to.of != NULL && !to.of->touched && from.of != NULL && !from.of->touched;
    if (nothing)
        return CUDA_SUCCESS;
    memmove(to.at, from.at, real);
    if (real < kept)
        memset(to.at + real, 0, kept - real);
    if (to.of != NULL)
        to.of->touched = true;
    return CUDA_SUCCESS;
}

CUresult place_fill(struct place to, const void *pattern, size_t width, size_t count)
{
    if (count > to.length / width)
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = count * width, kept = bytes < to.stored ? bytes : to.stored;
    static const char zeros[4];
    if (to.of != NULL && !to.of->touched && memcmp(pattern, zeros, width) == 0)
        return CUDA_SUCCESS;
    for (size_t i = 0; i < kept; i++)
        to.at[i] = ((const char *)pattern)[i % width];
    if (to.of != NULL)
        to.of->touched = true;
    return CUDA_SUCCESS;
}
