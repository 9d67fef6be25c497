"""The daemons of this node, and what each and its clients have as /dev/shm: a tmpfs of bounded size for each GPU.

Clients of one GPU share it, because MPS needs that. They cannot fill the memory of the node, and see nothing of the
clients of other GPUs.
"""

import asyncio
from collections import defaultdict
from pathlib import Path

from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mounts import TMPFS, LinuxMounts, Mounts
from lamina.ports.mps import ControlProgram, Home, Mps

_MAX_MOUNTS = 16
"""At one path: more than failures leave there."""


class SharedMemory:
    """With `size_mib` 0 it is a directory without a limit and nothing is mounted, as a lab without root needs it."""

    def __init__(self, mounts: Mounts, files: Files, size_mib: int) -> None:
        self._mounts = mounts
        self._files = files
        self._size_mib = size_mib

    async def provide(self, home: Home) -> None:
        """Make it, empty. Raises Outside."""
        await self.remove(home)
        self._files.share_folder(home.shm)
        if self._size_mib:
            await self._mounts.tmpfs(home.shm, self._size_mib)
            self._files.label(home.shm)
        self.check(home)

    def check(self, home: Home) -> None:
        """Raises Outside if clients would write elsewhere."""
        mounted = self._mounts.at(home.shm)
        if self._size_mib and not (mounted and mounted[-1].kind == TMPFS and mounted[-1].safe):
            raise Outside(f"the MPS daemon of {home.gpu} has no shared memory: {home.shm} is not a tmpfs of Lamina")

    async def remove(self, home: Home) -> None:
        """Remove it, also what was left of an earlier one. Containers that use it keep it until they end. Raises
        Outside."""
        for _ in range(_MAX_MOUNTS):
            if not self._mounts.at(home.shm):
                break
            await self._mounts.unmount(home.shm)
        self._files.remove_tree(home.shm)


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


def local_daemons(control: str, shm_mib: int, *, multi_user: bool = False, selinux_type: str = "") -> LocalDaemons:
    """With NVIDIA's program `control` and shared memory of `shm_mib`; see ControlProgram, SharedMemory and Files."""
    program = ControlProgram(control, own_shm=shm_mib > 0, multi_user=multi_user)
    return LocalDaemons(program, SharedMemory(LinuxMounts(), Files(selinux_type), shm_mib))
