"""Watches: from the history of a resource to what one client requested."""

import asyncio
from collections.abc import AsyncGenerator

from msgspec import Struct

from lamina.ports.kube import Object
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.api.storage.history import Change, Version
from lamina_lab.api.storage.store import Store
from lamina_lab.kubernetes.errors import bad_request
from lamina_lab.kubernetes.selectors import Predicate

BOOKMARK_SECONDS = 60.0
"""As API servers do, about."""
INITIAL_END = "k8s.io/initial-events-end"


class Watch(Struct, frozen=True):
    """What to watch. `revision` is the last one that the client knows; "" and "0" start with all objects."""

    resource: ApiResource
    namespace: str = ""
    selects: Predicate | None = None
    revision: str = ""
    bookmarks: bool = False
    initial: bool = False
    seconds: float | None = None


async def follow(store: Store, watch: Watch) -> AsyncGenerator[list[tuple[str, Version]], None]:
    """Batches of (type, object) as they happen. Raises 410 if the client has fallen behind the history."""
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
            batch = [seen for change in changes if (seen := _event_for(watch, change))]
            if batch:
                yield batch
            if not changes and not await _wait_for_change(wake, end):
                if end is not None and asyncio.get_running_loop().time() >= end:
                    return
                if watch.bookmarks and place == collection.history.end():  # a bookmark covers everything before it
                    yield [("BOOKMARK", bookmark(watch.resource, store.revision))]
    finally:
        stop_listening()


async def _wait_for_change(wake: asyncio.Event, end: float | None) -> bool:
    """Wait for a change. False if a bookmark is due or the watch has timed out."""
    left = BOOKMARK_SECONDS if end is None else min(BOOKMARK_SECONDS, end - asyncio.get_running_loop().time())
    try:
        async with asyncio.timeout(left):  # up to Python 3.11, wait_for loses a cancellation that comes with the change
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
    first = [("ADDED", version) for version in present if watch.selects is None or watch.selects(version.obj)]
    if watch.initial and watch.bookmarks:
        first.append(("BOOKMARK", bookmark(watch.resource, store.revision, initial_end=True)))
    return history.end(), first


def _event_for(watch: Watch, change: Change) -> tuple[str, Version] | None:
    """The event for one client: an object that starts or stops matching is added or deleted for it."""
    if watch.namespace and change.version.key[0] != watch.namespace:
        return None
    if watch.selects is None:
        return change.type, change.version
    after = change.type != "DELETED" and watch.selects(change.version.obj)
    before = change.before is not None and watch.selects(change.before.obj)
    if after:
        return ("MODIFIED" if before else "ADDED"), change.version
    return ("DELETED", change.version) if before else None


def bookmark(resource: ApiResource, revision: int, initial_end: bool = False) -> Version:
    meta: Object = {"creationTimestamp": None, "resourceVersion": str(revision)}
    if initial_end:
        meta["annotations"] = {INITIAL_END: "true"}
    return Version({"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta})
