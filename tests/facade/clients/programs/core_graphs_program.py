"""A program on cuda-core that launches graphs. Each has one kernel."""

import steps
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

FILL = 'extern "C" __global__ void fill(float *values) { values[threadIdx.x] = 1.0f; }'
device = Device(0)
device.set_current()
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
kernel = Program(FILL, "c++", options).compile("cubin").get_kernel("fill")
values = device.allocate(4096, stream=stream)
builder = stream.create_graph_builder().begin_building()
launch(builder, LaunchConfig(grid=1, block=256), kernel, values)
graph = builder.end_building().complete()
steps.run({}, Exception, lambda: graph.launch(stream), stream.sync)
