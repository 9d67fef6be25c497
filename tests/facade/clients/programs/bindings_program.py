"""A program on cuda-bindings and NVRTC."""

import numpy as np
import steps
from cuda.bindings import driver, nvrtc

SCALE = b'extern "C" __global__ void scale(float *values) { values[threadIdx.x] *= 2; }'


def need(answer):
    """The result of a call; an error is raised by its name."""
    error, *rest = answer
    if error.value != 0:
        raise RuntimeError(str(error))
    return rest[0] if len(rest) == 1 else tuple(rest)


need(driver.cuInit(0))
gpu = need(driver.cuDeviceGet(0))
context = need(driver.cuDevicePrimaryCtxRetain(gpu))
need(driver.cuCtxSetCurrent(context))
stream = need(driver.cuStreamCreate(0))

program = need(nvrtc.nvrtcCreateProgram(SCALE, b"scale.cu", 0, [], []))
need(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_80"]))
image = bytes(need(nvrtc.nvrtcGetCUBINSize(program)))
need(nvrtc.nvrtcGetCUBIN(program, image))
kernel = need(driver.cuModuleGetFunction(need(driver.cuModuleLoadData(image)), b"scale"))
values = need(driver.cuMemAlloc(4096))
arguments = (np.array([int(values)], np.uint64),)
pointers = np.array([argument.ctypes.data for argument in arguments], np.uint64)

physical = driver.CUmemAllocationProp()
physical.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
physical.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
pooled = driver.CUmemPoolProps()
pooled.allocType, pooled.location.type = physical.type, physical.location.type
pool = need(driver.cuMemPoolCreate(pooled))


def array(size):
    shape = driver.CUDA_ARRAY_DESCRIPTOR()
    shape.Width, shape.Height = 4096, size // 4096
    shape.Format, shape.NumChannels = driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8, 1
    return need(driver.cuArrayCreate(shape))


GLOBAL = driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value
allocators = {
    "linear": lambda size: need(driver.cuMemAlloc(size)),
    "pitched": lambda size: need(driver.cuMemAllocPitch(4096, size // 4096, 16)),
    "managed": lambda size: need(driver.cuMemAllocManaged(size, GLOBAL)),
    "stream": lambda size: need(driver.cuMemAllocAsync(size, stream)),
    "pool": lambda size: need(driver.cuMemAllocFromPoolAsync(size, pool, stream)),
    "physical": lambda size: need(driver.cuMemCreate(size, physical, 0)),
    "array": array,
}


def launch():
    need(driver.cuLaunchKernel(kernel, 1, 1, 1, 256, 1, 1, 0, stream, pointers.ctypes.data, 0))


steps.run(allocators, RuntimeError, launch, lambda: need(driver.cuStreamSynchronize(stream)))
