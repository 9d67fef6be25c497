"""What happened to the objects of a `FakeKube`, for its watches to read from a version on."""

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from lamina.ports.kube.errors import Gone
from lamina.ports.kube.protocol import Object, Watched
from lamina.ports.kube.resources import Resource


class RecordedChange(NamedTuple):
    """One object before and after, in JSON; None where it did not exist."""

    version: int
    before: bytes | None
    after: bytes | None

    def event(self, wanted: Callable[[Object], bool]) -> Watched | None:
        """What a watch of the wanted objects reports: one that is no longer wanted is deleted for it."""
        before, after = _decoded(self.before, wanted), _decoded(self.after, wanted)
        if after is not None:
            return Watched("ADDED" if before is None else "MODIFIED", after)
        if before is None:
            return None
        before["metadata"]["resourceVersion"] = str(self.version)
        return Watched("DELETED", before)


class FakeHistory:
    """The changes of each kind in order. `version` is that of the newest change of any kind.

    They are kept in JSON: each watch gets its own copy, and the garbage collector never walks them.
    """

    def __init__(self) -> None:
        self.version = 0
        self._oldest = 0
        self._changes: defaultdict[Resource, list[RecordedChange]] = defaultdict(list)
        self._events: defaultdict[Resource, asyncio.Event] = defaultdict(asyncio.Event)

    def add(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        """The change gets the next version, which is written into `after`."""
        self.version += 1
        if after is not None:
            after["metadata"]["resourceVersion"] = str(self.version)
        self._changes[resource].append(RecordedChange(self.version, _encoded(before), _encoded(after)))
        self._wake_up(resource)

    def since(self, resource: Resource, version: int) -> tuple[list[RecordedChange], int]:
        """The changes of a kind after `version`, and the version up to which they reach. Raises Gone."""
        if version < self._oldest:
            raise Gone(f"resourceVersion {version} is too old")
        changes = self._changes[resource]
        return changes[bisect_right(changes, version, key=lambda change: change.version) :], self.version

    async def next_change(self, resource: Resource) -> None:
        """Wait until an object of a kind changes, or `wake_up`."""
        await self._events[resource].wait()

    def wake_up(self) -> None:
        for resource in list(self._events):
            self._wake_up(resource)

    def forget(self) -> None:
        self._oldest = self.version
        self._changes.clear()

    def _wake_up(self, resource: Resource) -> None:
        if resource in self._events:
            self._events.pop(resource).set()


def _encoded(obj: Object | None) -> bytes | None:
    return None if obj is None else msgspec.json.encode(obj)


def _decoded(encoded: bytes | None, wanted: Callable[[Object], bool]) -> Object | None:
    obj: Object | None = None if encoded is None else msgspec.json.decode(encoded)
    return obj if obj is not None and wanted(obj) else None
