"""cuda-core takes memory until it is refused: from a pool, which keeps what it had, or as virtual memory."""

import sys

from cuda.bindings import driver
from cuda.core import Device, DeviceMemoryResource, VirtualMemoryResource

from bench.gpu.probes.kernels import say

MIB = 1 << 20
BLOCK_MIB = 64


def main(kind: str) -> None:
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    pool, virtual = DeviceMemoryResource(device), VirtualMemoryResource(device)
    take = virtual.allocate if kind == "virtual memory" else lambda size: pool.allocate(size, stream=stream)
    _, free, _ = driver.cuMemGetInfo()
    held, said = [], ""
    try:
        while True:
            held.append(take(BLOCK_MIB * MIB))
    except Exception as refused:
        said = str(refused)
    taken = 100 * len(held) * BLOCK_MIB * MIB / free
    say({"taken of what was free": taken, "it is out of memory": "OUT_OF_MEMORY" in said})


if __name__ == "__main__":
    main(sys.argv[1])
