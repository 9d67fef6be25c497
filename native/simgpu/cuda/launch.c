/* Kernel launches. A launch that says how long it takes is added to the GPU's timeline; the host goes on at once,
 * unless so many launches are waiting that the real driver would block too. */
#include "capture.h"
#include "launch.h"
#include "module.h"
#include "paging.h"

static void wait_for_room(device *dev, uint64_t number) {
    uint64_t oldest = __atomic_load_n(&dev->backlog[number % LAUNCH_BACKLOG], __ATOMIC_SEQ_CST);
    timeline_wait(&driver.m, dev->gpu, driver.slot, oldest);
}

/* What a kernel waits for pages of managed memory. */
static uint64_t paging_time(device *dev) {
    if (__atomic_load_n(&device_cell(dev)->managed, __ATOMIC_RELAXED) == 0) return 0;
    return (uint64_t)paging_touch(&driver.m, dev->gpu, driver.slot) * PAGING_NS_PER_MIB;
}

void launch_time(CUstream stream, uint64_t ns) {
    device *dev = stream->ctx->dev;
    __atomic_add_fetch(&device_cell(dev)->launches, 1, __ATOMIC_RELAXED);
    ns += paging_time(dev);
    if (ns == 0) return;
    uint64_t number = __atomic_fetch_add(&dev->launches, 1, __ATOMIC_SEQ_CST);
    if (number >= LAUNCH_BACKLOG) wait_for_room(dev, number);
    uint64_t position = timeline_add(&driver.m, dev->gpu, driver.slot, ns);
    __atomic_store_n(&dev->backlog[number % LAUNCH_BACKLOG], position, __ATOMIC_SEQ_CST);
    __atomic_store_n(&stream->last, position, __ATOMIC_SEQ_CST);
}

static CUresult launch(const CUDA_KERNEL_NODE_PARAMS *p, CUstream handle, bool cooperative) {
    CUstream stream;
    CUresult result = stream_resolve(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (!function_valid(p->func)) return CUDA_ERROR_INVALID_HANDLE;
    uint64_t threads = (uint64_t)p->blockDimX * p->blockDimY * p->blockDimZ;
    uint64_t blocks = (uint64_t)p->gridDimX * p->gridDimY * p->gridDimZ;
    if (threads == 0 || threads > 1024 || blocks == 0) return CUDA_ERROR_INVALID_VALUE;
    simgpu_gpu *gpu = device_record(stream->ctx->dev);
    if (__atomic_load_n(&gpu->lost, __ATOMIC_RELAXED)) return CUDA_ERROR_LAUNCH_FAILED;
    if (cooperative && blocks > (uint64_t)gpu->sm_count * (gpu->threads_per_sm / ((threads + 31) / 32 * 32)))
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    if (stream->capture != NULL) return capture_kernel(stream, p);
    launch_time(stream, function_duration(p->func, p->kernelParams, p->extra));
    return CUDA_SUCCESS;
}

SIM_API CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                                unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params,
                                void **extra) {
    CUDA_KERNEL_NODE_PARAMS p = {.func = f, .gridDimX = gx, .gridDimY = gy, .gridDimZ = gz, .blockDimX = bx,
                                 .blockDimY = by, .blockDimZ = bz, .sharedMemBytes = shared, .kernelParams = params,
                                 .extra = extra};
    return launch(&p, stream, false);
}

SIM_API CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                                           unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                           CUstream stream, void **params) {
    CUDA_KERNEL_NODE_PARAMS p = {.func = f, .gridDimX = gx, .gridDimY = gy, .gridDimZ = gz, .blockDimX = bx,
                                 .blockDimY = by, .blockDimZ = bz, .sharedMemBytes = shared, .kernelParams = params};
    return launch(&p, stream, true);
}

SIM_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra) {
    bool cooperative = false;
    if (config == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) cooperative = config->attrs[i].value.cooperative != 0;
    CUDA_KERNEL_NODE_PARAMS p = {.func = f, .gridDimX = config->gridDimX, .gridDimY = config->gridDimY,
                                 .gridDimZ = config->gridDimZ, .blockDimX = config->blockDimX,
                                 .blockDimY = config->blockDimY, .blockDimZ = config->blockDimZ,
                                 .sharedMemBytes = config->sharedMemBytes, .kernelParams = params, .extra = extra};
    return launch(&p, config->hStream, cooperative);
}

SIM_API CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags) {
    (void)list, (void)count, (void)flags;
    return CUDA_ERROR_NOT_SUPPORTED;
}
