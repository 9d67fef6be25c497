"""Keep up with a collection of objects, whatever happens to the connection.

A list is followed by a watch from its version. A watch that ends or breaks is taken up again where it stopped; where
that is too long ago the collection is listed again and the difference is reported as events, so that a missed deletion
is still reported. A consumer never has to list.
"""

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

ADDED, MODIFIED, DELETED, SYNCED = "ADDED", "MODIFIED", "DELETED", "SYNCED"
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

    `trim` reduces each object to what the listener needs, metadata's name, namespace, uid and resourceVersion
    included; the last form of every object is kept here. Failures are logged, and tried again after `PAUSES_S`.
    """
    known: dict[_Key, Object] = {}
    version = ""
    message = f"Following {resource.plural} was interrupted: %s"
    failures, defects = FailureLog(log, message, pauses_s=PAUSES_S), FailureLog(log, message, pauses_s=PAUSES_S)
    while True:
        try:
            if not version:
                listing = await kube.list(resource, namespace=namespace, labels=labels, fields=fields)
                version = listing.version
                failures.succeeded()
                for event in _difference(known, [trim(obj) for obj in listing.items]):
                    yield event
                yield Followed(SYNCED, {})
            stream = kube.watch(resource, version, namespace=namespace, labels=labels, fields=fields)
            try:
                async for watched in stream:
                    version = watched.object["metadata"]["resourceVersion"]
                    failures.succeeded()
                    defects.succeeded()
                    if watched.kind != "BOOKMARK":
                        for event in _one(known, watched.kind, trim(watched.object)):
                            yield event
            finally:
                await stream.aclose()
            pause = PAUSES_S[0]
        except Gone:
            version, pause = "", 0.0
        except Outside as error:
            pause = failures.failed(error)
            if failures.count >= _REFUSALS and not isinstance(error, Unreachable):
                version = ""
        except Exception as error:
            # What is known must outlive a defect: who follows again from nothing misses the deletions until then.
            version, pause = "", defects.failed(error)
        await clock.sleep(pause)


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
