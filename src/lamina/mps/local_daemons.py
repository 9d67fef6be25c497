"""The MPS daemons of this node: NVIDIA's program, and shared memory for each daemon."""

import asyncio
from collections import defaultdict
from pathlib import Path

from lamina.mps.shared_memory import SharedMemory
from lamina.ports.files import Files
from lamina.ports.mounts import LinuxMounts
from lamina.ports.mps import ControlProgram, Home, Mps


class LocalDaemons:
    """Implements the port to MPS. Calls for one daemon wait for each other: an agent that was killed may have left one
    that still runs."""

    def __init__(self, program: Mps, shared_memory: SharedMemory) -> None:
        self._program = program
        self._shared_memory = shared_memory
        self._locks: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def start(self, home: Home) -> None:
        async with self._locks[home.folder]:
            await self._shared_memory.provide(home)
            await self._program.start(home)

    async def ask(self, home: Home, command: str) -> str:
        async with self._locks[home.folder]:
            self._shared_memory.check(home)
            return await self._program.ask(home, command)

    async def end(self, home: Home) -> None:
        async with self._locks[home.folder]:
            await self._program.end(home)
            await self._shared_memory.remove(home)


def local_daemons(control: str, shm_mib: int, *, multi_user: bool = False) -> LocalDaemons:
    """With NVIDIA's program `control` and shared memory of `shm_mib`; see ControlProgram and SharedMemory."""
    program = ControlProgram(control, own_shm=shm_mib > 0, multi_user=multi_user)
    return LocalDaemons(program, SharedMemory(LinuxMounts(), Files(), shm_mib))
