"""Keep up with a collection of objects, whatever happens to the connection.

A list is followed by a watch from its version. A watch that ends or breaks is taken up again where it stopped; where
that is too long ago the collection is listed again and the difference is reported as events, so that a missed deletion
is still reported. A consumer never has to list.
"""

import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube.errors import Gone, Unreachable
from lamina.ports.kube.protocol import Kube, Object
from lamina.ports.kube.resources import Resource
from lamina.ports.polling import FailureLog

log = logging.getLogger(__name__)

ADDED, MODIFIED, DELETED, BOOKMARK, SYNCED = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "SYNCED"
PAUSES_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Pauses between tries; the last one is repeated."""
_REFUSALS = 3
"""So often in a row a server may refuse a watch before the version is given up: one that was restored from a backup
does not know the versions that it gave before, and does not call them too old either."""

_Key = tuple[str, str]


class Followed(NamedTuple):
    """ADDED, MODIFIED or DELETED with the object (as it last was), or SYNCED with an empty one.

    SYNCED comes after each full list: once at the start, when everything that exists has been reported, and again after
    a gap has been closed.
    """

    kind: str
    object: Object


class FollowedCollection:
    """One collection, and how far it is known. The last form of every object is kept.

    `trim` reduces each object to what the listener needs, its identity included.
    """

    def __init__(
        self,
        kube: Kube,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        trim: Callable[[Object], Object] = lambda obj: obj,
    ) -> None:
        self._kube = kube
        self._resource = resource
        self._selected = {"namespace": namespace, "labels": labels, "fields": fields}
        self._trim = trim
        self._known: dict[_Key, Object] = {}
        self.version = ""
        """The version up to which everything is known; empty where the collection has to be listed."""

    async def events(self) -> AsyncGenerator[Followed]:
        """What happens from this version on, or since the list of before, with bookmarks. Ends when the watch ends.

        Raises Outside, and what `trim` raises.
        """
        if not self.version:
            listing = await self._kube.list(self._resource, **self._selected)
            events = _difference(self._known, [self._trim(obj) for obj in listing.items])
            self.version = listing.version
            for event in events:
                yield event
            yield Followed(SYNCED, {})
        stream = self._kube.watch(self._resource, self.version, **self._selected)
        try:
            async for watched in stream:
                self.version = watched.object["metadata"]["resourceVersion"]
                if watched.kind == BOOKMARK:
                    yield Followed(BOOKMARK, {})
                    continue
                for event in _one(self._known, watched.kind, self._trim(watched.object)):
                    yield event
        except Gone:
            self.version = ""
        finally:
            await stream.aclose()


async def follow(
    kube: Kube,
    clock: Clock,
    resource: Resource,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    trim: Callable[[Object], Object] = lambda obj: obj,
) -> AsyncGenerator[Followed]:
    """Tell everything that exists, then SYNCED, then everything that happens. Ends only when it is closed.

    `trim` is that of FollowedCollection. Failures are logged, and tried again after `PAUSES_S`.
    """
    collection = FollowedCollection(kube, resource, namespace=namespace, labels=labels, fields=fields, trim=trim)
    message = f"Following {resource.plural} was interrupted: %s"
    failures, defects = FailureLog(log, message, pauses_s=PAUSES_S), FailureLog(log, message, pauses_s=PAUSES_S)
    while True:
        watching = bool(collection.version)
        try:
            async with contextlib.aclosing(collection.events()) as events:
                async for event in events:
                    failures.succeeded()
                    if watching:
                        defects.succeeded()
                    watching = watching or event.kind == SYNCED
                    if event.kind != BOOKMARK:
                        yield event
            pause = PAUSES_S[0] if collection.version else 0.0
        except Outside as error:
            pause = failures.failed(error)
            if failures.count >= _REFUSALS and not isinstance(error, Unreachable):
                collection.version = ""
        except Exception as error:
            # What is known must outlive a defect: who follows again from nothing misses the deletions until then.
            collection.version, pause = "", defects.failed(error)
        await clock.sleep(pause)


def identity(obj: Object) -> Object:
    """What of its metadata says which object it is, and in which version."""
    return {key: obj["metadata"].get(key) for key in ("name", "namespace", "uid", "resourceVersion")}


def trimmed_to(*fields: str) -> Callable[[Object], Object]:
    """What reduces an object to its identity and these fields, such as `spec` or `status.phase`."""
    paths = [field.partition(".") for field in fields]

    def trim(obj: Object) -> Object:
        trimmed: Object = {"metadata": identity(obj)}
        for whole, _, part in paths:
            found = obj.get(whole) or {}
            if part:
                trimmed.setdefault(whole, {})[part] = found.get(part)
            else:
                trimmed[whole] = found
        return trimmed

    return trim


def _one(known: dict[_Key, Object], kind: str, obj: Object) -> list[Followed]:
    """What a watch's event says beyond what is known: repetitions say nothing, a new UID ends the older object."""
    key = _key(obj)
    before = known.get(key)
    if kind == DELETED:
        if before is not None:
            del known[key]
        return [Followed(DELETED, obj)]
    events = []
    if before is not None and before["metadata"].get("uid") != obj["metadata"].get("uid"):
        events.append(Followed(DELETED, before))
        before = None
    known[key] = obj
    events.append(Followed(ADDED if before is None else MODIFIED, obj))
    return events


def _difference(known: dict[_Key, Object], items: list[Object]) -> list[Followed]:
    """The events that lead from what is known to `items`; `known` becomes `items`."""
    present = {_key(obj) for obj in items}
    events = [Followed(DELETED, known.pop(key)) for key in [key for key in known if key not in present]]
    for obj in items:
        before = known.get(_key(obj))
        if before is None or before["metadata"].get("resourceVersion") != obj["metadata"].get("resourceVersion"):
            events += _one(known, MODIFIED, obj)
    return events


def _key(obj: Object) -> _Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
