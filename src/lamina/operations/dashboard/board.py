"""The latest document, and whether it is up to date. Readers wait for what is newer than what they have."""

import asyncio
from typing import NamedTuple

from lamina.operations.dashboard.document import ClusterDocument
from lamina.operations.dashboard.history import AllocationHistory, UseHistory
from lamina.operations.dashboard.holders import HolderHistory
from lamina.operations.dashboard.usage import with_usage
from lamina.report.cluster_reader import ClusterObjects
from lamina.report.cluster_use import ClusterUse


class Posted(NamedTuple):
    """What readers get. `lost` says why the cluster cannot be followed; empty while it is."""

    version: int
    document: ClusterDocument
    lost: str
    ready: bool
    """Whether the cluster has been read at all."""
    usage_problem: str = ""
    """Why the use of some containers is not known; empty where no metrics are read either."""
    read_at: float = 0.0
    """When metrics were last read, in seconds since the epoch."""
    allocation_at: float = -1.0
    """The moment of the last point of `Board.allocation`."""


class Board:
    """Written in one event loop, read by many there."""

    def __init__(self) -> None:
        self.current = Posted(0, ClusterDocument(), "", ready=False)
        self.history = UseHistory()
        self.allocation = AllocationHistory()
        self.holders = HolderHistory()
        self.objects: ClusterObjects | None = None
        """What the document was computed from, without nodes; None until the cluster has been read."""
        self.closed = False
        self._without_usage = ClusterDocument()
        self._use = ClusterUse()
        self._changed = asyncio.Event()

    def post(self, document: ClusterDocument, now: float | None = None) -> None:
        """The cluster is followed, and this is what it is like now, in seconds since the epoch."""
        self._without_usage = document
        shown = with_usage(document, self._use)
        if now is not None:
            self.allocation.note(now, shown.cluster)
            self.holders.note(now, shown)
        self._set(self.current._replace(document=shown, lost="", ready=True))

    def use(self, use: ClusterUse, problem: str, now: float) -> None:
        """What containers use now, and what could not be read of it."""
        self._use = use
        document = with_usage(self._without_usage, use)
        self.history.note(now, document)
        if self.current.ready and not self.current.lost:
            self.allocation.note(now, document.cluster)
            self.holders.note(now, document)
        self._set(self.current._replace(document=document, usage_problem=problem, read_at=now))

    def lose(self, reason: str) -> None:
        """The cluster cannot be followed. The document stays as it is."""
        if reason != self.current.lost:
            self._set(self.current._replace(lost=reason))

    def close(self) -> None:
        """Nothing comes any more, so readers stop waiting."""
        self.closed = True
        self._set(self.current)

    async def newer(self, version: int) -> Posted:
        """What is posted, as soon as its version is another one than this or the board is closed."""
        while self.current.version == version and not self.closed:
            await self._changed.wait()
        return self.current

    def _set(self, posted: Posted) -> None:
        self.current = posted._replace(version=self.current.version + 1, allocation_at=self.allocation.last_at)
        self._changed.set()
        self._changed = asyncio.Event()
