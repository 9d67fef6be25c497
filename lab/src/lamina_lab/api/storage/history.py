"""The changes of one resource, kept for watchers: a bounded log that each watcher reads at its own pace.

Nothing is copied or queued per watcher. A watcher that falls behind the bound gets an error, as after etcd's
compaction.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import msgspec

from lamina.ports.kube import Object
from lamina_lab.kubernetes.errors import expired


class Version:
    """One state of one object. The object is shared by all readers and never changed; its JSON is built once."""

    __slots__ = ("_json", "obj", "revision")

    def __init__(self, obj: Object) -> None:
        self.obj = obj
        self.revision = int(obj["metadata"]["resourceVersion"])
        self._json: bytes | None = None

    @property
    def json(self) -> bytes:
        if self._json is None:
            self._json = msgspec.json.encode(self.obj)
        return self._json

    @property
    def meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = self.obj["metadata"]
        return meta

    @property
    def key(self) -> tuple[str, str]:
        return self.meta.get("namespace", ""), self.meta["name"]


class Change:
    """ADDED, MODIFIED or DELETED; `before` is the state that the change replaced."""

    __slots__ = ("before", "revision", "type", "version")

    def __init__(self, type_: str, version: Version, before: Version | None) -> None:
        self.type = type_
        self.version = version
        self.before = before
        self.revision = version.revision


class History:
    """Changes in order of revision; the oldest are dropped beyond `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changes: list[Change] = []
        self._forgotten = 0  # the number of changes before self._changes[0]
        self._oldest = 0  # revision of the newest dropped change
        self._listeners: set[Callable[[], None]] = set()

    def append(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > 2 * self._limit:
            drop = len(self._changes) - self._limit
            self._oldest = self._changes[drop - 1].revision
            self._forgotten += drop
            del self._changes[:drop]
        for wake in self._listeners:
            wake()

    def end(self) -> int:
        """The position after the newest change."""
        return self._forgotten + len(self._changes)

    def place_after(self, revision: int) -> int:
        """The position of the first change newer than `revision`. Raises 410 if some of those were dropped."""
        if revision < self._oldest:
            raise expired(revision, self._oldest)
        return self._forgotten + bisect_right(self._changes, revision, key=lambda change: change.revision)

    def read(self, place: int) -> list[Change]:
        """Changes from `place` on. Raises 410 if they were dropped."""
        if place < self._forgotten:
            raise expired(0, self._oldest)
        return self._changes[place - self._forgotten :]

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` at every change until the returned function is called."""
        self._listeners.add(wake)
        return lambda: self._listeners.discard(wake)
