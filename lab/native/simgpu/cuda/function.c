#include "cuda/function.h"

#include "cuda/context.h"
#include "cuda/driver.h"

#include <stdlib.h>
#include <string.h>

#define FUNCTION_MAGIC 0x46554e43
#define WARP_THREADS 32

CUfunction function_create(CUmodule module, int target, const char *name)
{
    CUfunction f = calloc(1, sizeof *f + strlen(name) + 1);
    if (f == NULL)
        return NULL;
    f->magic = FUNCTION_MAGIC;
    if (strcmp(name, "spin") == 0)
        f->kind = FUNCTION_SPIN;
    else if (strcmp(name, "empty") == 0)
        f->kind = FUNCTION_EMPTY;
    else if (strcmp(name, "fault") == 0)
        f->kind = FUNCTION_FAULT;
    f->module = module;
    f->target = target;
    strcpy(f->name, name);
    return f;
}

void function_destroy(CUfunction f)
{
    f->magic = 0;
    free(f);
}

bool function_is_valid(CUfunction f)
{
    return f != NULL && f->magic == FUNCTION_MAGIC;
}

static CUresult check(CUfunction f)
{
    return function_is_valid(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

uint64_t function_blocks_per_sm(const struct simgpu_gpu *gpu, uint64_t threads)
{
    uint64_t warps = (threads + WARP_THREADS - 1) / WARP_THREADS;
    return gpu->threads_per_sm / (warps * WARP_THREADS);
}

uint64_t function_read_duration(CUfunction f, void **params, void **extra)
{
    enum { END = 0, BUFFER_POINTER = 1 };
    uint64_t ns = 0;
    if (f->kind == FUNCTION_EMPTY)
        return 0;
    if (f->kind == FUNCTION_PLAIN)
        return driver.m.head->kernel_ns;
    if (params != NULL && params[0] != NULL)
        memcpy(&ns, params[0], sizeof ns);
    for (int i = 0; params == NULL && extra != NULL && extra[i] != (void *)END; i += 2)
        if (extra[i] == (void *)BUFFER_POINTER)
            memcpy(&ns, extra[i + 1], sizeof ns);
    return ns;
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction f)
{
    TRY(check(f));
    *out = f->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction f)
{
    TRY(check(f));
    *name = f->name;
    return CUDA_SUCCESS;
}

/* Of the calling thread's GPU, like 80 for compute capability 8.0: each image holds code for it. A function of a
 * library may be queried without a context, of which the first GPU answers. */
static int architecture(void)
{
    CUcontext ctx = context_current();
    const struct simgpu_gpu *gpu = device_record(ctx != NULL ? ctx->dev : &driver.devices[0]);
    return (int)(gpu->compute_major * 10 + gpu->compute_minor);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f)
{
    enum { PTX_VERSION = 5, BINARY_VERSION = 6 };
    static const int values[] = {1024, 0, 0, 0, 32, 0, 0, 0, 49152, -1};
    TRY(check(f));
    if (value == NULL || attribute < 0 || attribute > 17)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute < 10 ? values[attribute] : 0;
    if (attribute == PTX_VERSION || attribute == BINARY_VERSION)
        *value = architecture();
    if (attribute == PTX_VERSION && f->target != 0)
        *value = f->target;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value)
{
    (void)attribute, (void)value;
    return check(f);
}

CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
    (void)config;
    return check(f);
}

CUresult cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig config)
{
    (void)config;
    return check(f);
}

CUresult cuFuncLoad(CUfunction f)
{
    return check(f);
}

CUresult cuFuncIsLoaded(int *state, CUfunction f)
{
    TRY(check(f));
    *state = 1;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads, size_t shared)
{
    CUcontext ctx;
    (void)shared;
    TRY(context_require(&ctx));
    if (!function_is_valid(f) || threads <= 0 || blocks == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = (int)function_blocks_per_sm(device_record(ctx->dev), (uint64_t)threads);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f, int threads, size_t shared,
                                                              unsigned int flags)
{
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}
