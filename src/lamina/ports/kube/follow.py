"""Keep up with a collection of objects, whatever happens to the connection.

A list is followed by a watch from its version. A watch that ends or breaks is taken up again where it stopped; where
that is too long ago the collection is listed again and the difference is reported as events, so that a missed deletion
is still reported. A consumer never has to list.

A consumer that also reads or writes single objects notes these here: one that comes and goes between two lists is in
neither of them, and no watch would say that it is gone.
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
        self._noted: dict[_Key, Object] = {}
        """Objects that were noted, until a list or a watch reports what became of them."""
        self.version = ""
        """The version up to which everything is known; empty where the collection has to be listed."""

    def note(self, obj: Object) -> bool:
        """The object was read or written besides. Its deletion is reported, even if nothing else is reported of it.

        Returns whether it may still exist: False where its deletion has been reported already. Raises what `trim`
        raises.
        """
        key, uid = _key(obj), _uid(obj)
        if (known := self._known.get(key)) is not None and _uid(known) == uid:
            return True
        if self.version and _precedes(obj, self.version):
            return False
        self._noted[key] = self._trim(obj)
        return True

    async def events(self) -> AsyncGenerator[Followed]:
        """What happens from this version on, or since the list of before, with bookmarks. Ends when the watch ends.

        Raises Outside, and what `trim` raises.
        """
        if not self.version:
            listing = await self._kube.list(self._resource, **self._selected)
            items = [self._trim(obj) for obj in listing.items]
            listed = {_key(obj): obj for obj in items}
            missed = [event for key in [*self._noted] for event in self._missed(key, listed.get(key), listing.version)]
            events = missed + _difference(self._known, items)
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
                obj = self._trim(watched.object)
                missed = self._missed(_key(obj), obj, obj["metadata"].get("resourceVersion"))
                for event in missed + _one(self._known, watched.kind, obj):
                    yield event
        except Gone:
            self.version = ""
        finally:
            await stream.aclose()

    def _missed(self, key: _Key, reported: Object | None, version: str) -> list[Followed]:
        """The end of a noted object, where `reported` stands in its place at this version, or nothing."""
        noted = self._noted.get(key)
        if noted is None:
            return []
        same = reported is not None and _uid(reported) == _uid(noted)
        if not same and not _precedes(noted, version):
            return []  # made since
        del self._noted[key]
        return [] if same else [Followed(DELETED, noted)]

    async def follow(self, clock: Clock) -> AsyncGenerator[Followed]:
        """Tell everything that exists, then SYNCED, then everything that happens. Ends only when it is closed.

        Failures are logged, and tried again after `PAUSES_S`.
        """
        message = f"Following {self._resource.plural} was interrupted: %s"
        failures, defects = FailureLog(log, message, pauses_s=PAUSES_S), FailureLog(log, message, pauses_s=PAUSES_S)
        while True:
            watching = bool(self.version)
            try:
                async with contextlib.aclosing(self.events()) as events:
                    async for event in events:
                        failures.succeeded()
                        if watching:
                            defects.succeeded()
                        watching = watching or event.kind == SYNCED
                        if event.kind != BOOKMARK:
                            yield event
                pause = PAUSES_S[0] if self.version else 0.0
            except Outside as error:
                pause = failures.failed(error)
                if failures.count >= _REFUSALS and not isinstance(error, Unreachable):
                    self.version = ""
            except Exception as error:
                # What is known must outlive a defect: who follows again from nothing misses the deletions until then.
                self.version, pause = "", defects.failed(error)
            await clock.sleep(pause)


def follow(
    kube: Kube,
    clock: Clock,
    resource: Resource,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    trim: Callable[[Object], Object] = lambda obj: obj,
) -> AsyncGenerator[Followed]:
    """Follow a collection of which nothing is known yet; see FollowedCollection."""
    collection = FollowedCollection(kube, resource, namespace=namespace, labels=labels, fields=fields, trim=trim)
    return collection.follow(clock)


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


def _precedes(obj: Object, version: str) -> bool:
    """Whether the object was in this form already when the collection had the version. Versions of one collection are
    numbers that grow (KEP-5504)."""
    try:
        return int(obj["metadata"]["resourceVersion"]) <= int(version)
    except (KeyError, TypeError, ValueError):
        return True


def _uid(obj: Object) -> str | None:
    uid: str | None = obj["metadata"].get("uid")
    return uid


def _key(obj: Object) -> _Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
