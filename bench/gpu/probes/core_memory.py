"""cuda-core takes memory from a pool and as virtual memory until it is refused."""

from collections.abc import Callable
from typing import Any

from cuda.bindings import driver
from cuda.core import Device, DeviceMemoryResource, VirtualMemoryResource

from bench.gpu.probes.kernels import say

MIB = 1 << 20
BLOCK_MIB = 64


def filled(name: str, take: Callable[[int], Any], done: Callable[[], None]) -> dict[str, object]:
    """Which part of the free memory is had before the refusal, and whether that is for lack of memory."""
    _, free, _ = driver.cuMemGetInfo()
    held, said = [], ""
    try:
        while True:
            held.append(take(BLOCK_MIB * MIB))
    except Exception as refused:
        said = str(refused)
    taken = 100 * len(held) * BLOCK_MIB * MIB / free
    for each in held:
        each.close()
    done()
    return {f"{name}: taken of what was free": taken, f"{name}: it is out of memory": "OUT_OF_MEMORY" in said}


def main() -> None:
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    pool, virtual = DeviceMemoryResource(device), VirtualMemoryResource(device)
    facts = filled("pool", lambda size: pool.allocate(size, stream=stream), stream.sync)
    pool.close()
    say(facts | filled("virtual", virtual.allocate, device.sync))


if __name__ == "__main__":
    main()
