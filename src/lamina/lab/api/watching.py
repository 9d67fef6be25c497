"""Watches: from the history of a resource to what one client asked to see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from lamina.lab.api.history import Change, Version
from lamina.lab.api.resources import Resource
from lamina.lab.api.selectors import Predicate
from lamina.lab.api.status import Obj, bad_request
from lamina.lab.api.store import Store

BOOKMARK_SECONDS = 30.0
INITIAL_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Watch:
    """What to watch. `revision` is the last one that the client knows; "" or "0" begin with all objects."""

    resource: Resource
    namespace: str = ""
    selects: Predicate | None = None
    revision: str = ""
    bookmarks: bool = False
    initial: bool = False
    seconds: float | None = None


async def follow(store: Store, watch: Watch) -> AsyncGenerator[list[tuple[str, Version]], None]:
    """Batches of (type, object) as they happen. Raises 410 when the client has fallen behind the history."""
    collection = store.collection(watch.resource)
    wake = asyncio.Event()
    stop_listening = collection.history.listen(wake.set)
    try:
        place, first = _begin(store, watch)
        if first:
            yield first
        end = None if watch.seconds is None else asyncio.get_running_loop().time() + watch.seconds
        while True:
            wake.clear()
            changes = collection.history.read(place)
            place += len(changes)
            batch = [seen for change in changes if (seen := _seen(watch, change))]
            if batch:
                yield batch
            if not changes and not await _awoken(wake, end):
                if end is not None and asyncio.get_running_loop().time() >= end:
                    return
                if watch.bookmarks and place == collection.history.end():  # a bookmark vouches for all before it
                    yield [("BOOKMARK", bookmark(watch.resource, store.revision))]
    finally:
        stop_listening()


async def _awoken(wake: asyncio.Event, end: float | None) -> bool:
    """Wait for a change; False when a bookmark is due or the watch's time is over."""
    left = BOOKMARK_SECONDS if end is None else min(BOOKMARK_SECONDS, end - asyncio.get_running_loop().time())
    try:
        async with asyncio.timeout(left):  # wait_for loses a cancellation that comes with the change, up to Python 3.11
            await wake.wait()
    except TimeoutError:
        return False
    return True


def _begin(store: Store, watch: Watch) -> tuple[int, list[tuple[str, Version]]]:
    history = store.collection(watch.resource).history
    if watch.revision not in ("", "0") and not watch.initial:
        if not watch.revision.isdigit():
            raise bad_request(f'invalid resource version "{watch.revision}": it must be a number')
        return history.place_after(int(watch.revision)), []
    present = store.list(watch.resource, watch.namespace)
    first = [("ADDED", each) for each in present if watch.selects is None or watch.selects(each.obj)]
    if watch.initial and watch.bookmarks:
        first.append(("BOOKMARK", bookmark(watch.resource, store.revision, initial_end=True)))
    return history.end(), first


def _seen(watch: Watch, change: Change) -> tuple[str, Version] | None:
    """How a change looks to one client: an object that begins or ceases to match is added or deleted for it."""
    if watch.namespace and change.version.key[0] != watch.namespace:
        return None
    if watch.selects is None:
        return change.type, change.version
    after = change.type != "DELETED" and watch.selects(change.version.obj)
    before = change.before is not None and watch.selects(change.before.obj)
    if after:
        return ("MODIFIED" if before else "ADDED"), change.version
    return ("DELETED", change.version) if before else None


def bookmark(resource: Resource, revision: int, initial_end: bool = False) -> Version:
    meta: Obj = {"creationTimestamp": None, "resourceVersion": str(revision)}
    if initial_end:
        meta["annotations"] = {INITIAL_END: "true"}
    return Version({"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta})
