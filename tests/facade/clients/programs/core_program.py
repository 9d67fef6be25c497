"""A program on cuda-core, whose kernel NVRTC compiles."""

import steps
from cuda.core import Device, DeviceMemoryResource, LaunchConfig, Program, ProgramOptions, VirtualMemoryResource, launch

SCALE = """extern "C" __global__ void scale(float *values, float factor, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] *= factor;
}"""
device = Device(0)
device.set_current()
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
kernel = Program(SCALE, "c++", options).compile("cubin").get_kernel("scale")
values = device.allocate(4096, stream=stream)
pool, virtual = DeviceMemoryResource(device), VirtualMemoryResource(device)
allocators = {
    "device": lambda size: device.allocate(size, stream=stream),
    "pool": lambda size: pool.allocate(size, stream=stream),
    "virtual": virtual.allocate,
}
config = LaunchConfig(grid=4, block=256)
steps.run(allocators, Exception, lambda: launch(stream, config, kernel, values, 2.0, 1024), stream.sync)
