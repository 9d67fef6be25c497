#include "cuda/launch.h"

#include "core/paging.h"
#include "core/timeline.h"
#include "cuda/capture.h"
#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/function.h"

#include <stdatomic.h>

#define MAX_THREADS 1024

static void wait_for_oldest(struct device *dev, uint64_t number)
{
    uint64_t oldest = atomic_load(&dev->backlog[number % LAUNCH_BACKLOG]);
    timeline_wait(&driver.m, dev->gpu, driver.slot, oldest);
}

/* How long a kernel waits for pages of managed memory. */
static uint64_t paging_ns(struct device *dev)
{
    if (atomic_load(&device_cell(dev)->managed) == 0)
        return 0;
    return (uint64_t)paging_touch(&driver.m, dev->gpu, driver.slot, atomic_load(&dev->kept_mib)) * PAGING_NS_PER_MIB;
}

void launch_append(CUstream stream, uint64_t ns)
{
    struct device *dev = stream->ctx->dev;
    atomic_fetch_add(&device_cell(dev)->launches, 1);
    ns += paging_ns(dev);
    if (ns == 0)
        return;
    uint64_t number = atomic_fetch_add(&dev->launches, 1);
    if (number >= LAUNCH_BACKLOG)
        wait_for_oldest(dev, number);
    uint64_t position = timeline_append(&driver.m, dev->gpu, driver.slot, ns);
    atomic_store(&dev->backlog[number % LAUNCH_BACKLOG], position);
    atomic_store(&stream->last, position);
}

static CUresult launch(const CUlaunchConfig *config, CUfunction f, void **params, void **extra, bool cooperative)
{
    CUstream stream;
    TRY(stream_resolve(config->hStream, &stream));
    if (!function_is_valid(f))
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    uint64_t blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
    if (threads == 0 || threads > MAX_THREADS || blocks == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct simgpu_gpu *gpu = device_record(stream->ctx->dev);
    if (atomic_load(&gpu->lost))
        return CUDA_ERROR_LAUNCH_FAILED;
    if (cooperative && blocks > (uint64_t)gpu->sm_count * function_blocks_per_sm(gpu, threads))
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    if (stream->capture == NULL) {
        launch_append(stream, function_read_duration(f, params, extra));
        if (f->kind == FUNCTION_FAULT)
            atomic_store(&stream->ctx->fault, atomic_load(&stream->last));
        return CUDA_SUCCESS;
    }
    CUDA_KERNEL_NODE_PARAMS node = {.func = f,
                                    .gridDimX = config->gridDimX,
                                    .gridDimY = config->gridDimY,
                                    .gridDimZ = config->gridDimZ,
                                    .blockDimX = config->blockDimX,
                                    .blockDimY = config->blockDimY,
                                    .blockDimZ = config->blockDimZ,
                                    .sharedMemBytes = config->sharedMemBytes,
                                    .kernelParams = params,
                                    .extra = extra};
    return capture_add_kernel(stream, &node);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                        unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params,
                        void **extra)
{
    CUlaunchConfig config = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};
    return launch(&config, f, params, extra, false);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                                   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                                   void **params)
{
    CUlaunchConfig config = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};
    return launch(&config, f, params, NULL, true);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    bool cooperative = false;
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            cooperative = config->attrs[i].value.cooperative != 0;
    return launch(config, f, params, extra, cooperative);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags)
{
    (void)list, (void)count, (void)flags;
    return CUDA_ERROR_NOT_SUPPORTED;
}
