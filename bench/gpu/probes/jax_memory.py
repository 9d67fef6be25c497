"""JAX takes memory with one of its allocators until it is refused, and computes afterwards."""

import os
import sys

from bench.gpu.probes.kernels import say

MIB = 1 << 20
BLOCK_MIB = 64
SETTINGS = {
    "preallocated": {"XLA_PYTHON_CLIENT_PREALLOCATE": "true", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".75"},
    "on demand": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".95"},
    "as the platform": {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
}
"""Allocators by the environment that chooses them, with the part of the memory that JAX takes for itself."""


def main(kind: str) -> None:
    os.environ |= SETTINGS[kind]
    import jax
    import jax.numpy as jnp

    device = jax.devices()[0]
    stats = device.memory_stats() or {}
    held, said = [], ""
    try:
        while True:
            held.append(jax.block_until_ready(jnp.zeros(BLOCK_MIB * MIB, jnp.uint8)))
    except Exception as refused:
        said = str(refused)
    taken = len(held) * BLOCK_MIB
    held.clear()
    values = jnp.ones((256, 256), jnp.float32)
    say(
        {
            "limit of JAX": stats.get("bytes_limit", 0) / MIB,
            "taken": taken,
            "it is out of memory": "RESOURCE_EXHAUSTED" in said,
            "sum after the refusal": float((values @ values).sum()),
        }
    )


if __name__ == "__main__":
    main(sys.argv[1])
