"""CuPy takes memory with one of its pools until it is refused, and runs a kernel afterwards."""

import sys

import cupy
from cupy.cuda.memory import OutOfMemoryError

from bench.gpu.probes.kernels import say

MIB = 1 << 20
BLOCK_MIB = 64


def main(kind: str) -> None:
    pool = cupy.cuda.MemoryAsyncPool() if kind == "stream-ordered" else cupy.get_default_memory_pool()
    cupy.cuda.set_allocator(pool.malloc)
    free, total = cupy.cuda.runtime.memGetInfo()
    held, said = [], ""
    try:
        while True:
            held.append(cupy.empty(BLOCK_MIB * MIB, dtype=cupy.uint8))
    except (OutOfMemoryError, cupy.cuda.runtime.CUDARuntimeError) as refused:
        said = f"{type(refused).__name__} {refused}"
    taken = len(held) * BLOCK_MIB
    held.clear()
    say(
        {
            "total": total / MIB,
            "taken of what was free": 100 * taken * MIB / free,
            "it is out of memory": "outofmemory" in said.lower().replace(" ", "").replace("_", ""),
            "sum after the refusal": float((cupy.ones(1024, dtype=cupy.float32) + 1).sum()),
        }
    )


if __name__ == "__main__":
    main(sys.argv[1])
