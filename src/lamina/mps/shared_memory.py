"""What the daemon of a GPU and its clients have as /dev/shm: a tmpfs of bounded size for each GPU.

Clients of one GPU share it, because MPS needs that. They cannot fill the memory of the node, and see nothing of the
clients of other GPUs.
"""

from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mounts import TMPFS, Mounts
from lamina.ports.mps import Home

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
