"""What the cluster looks like now: collections kept up by watches, and by what its owner has just written itself.

A loop that acts on its own last write must not read an older state, or it does everything twice. So each answer to a
write is noted here at once; a watch event that is older than what is known changes nothing.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import aclosing

from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.ports.kube import Kube, Resource, follow
from lamina.ports.kube.follow import DELETED, SYNCED

Listener = Callable[[Resource, Object | None, Object | None], None]
"""Told of each change: the collection, the object before (None: it is new) and after (None: it is gone)."""

_TOMBSTONES = 8192


class Cache:
    """Objects by collection. `optional` collections may not be served yet; nobody waits for those."""

    def __init__(self, kube: Kube, resources: Iterable[Resource], optional: Iterable[Resource] = ()) -> None:
        self._kube = kube
        self._known: dict[Resource, dict[str, Object]] = {each: {} for each in (*resources, *optional)}
        self._awaited = {each: asyncio.Event() for each in resources}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every change from now on, after it is visible here, until the answer is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        known = self._known[resource].values()
        return [obj for obj in known if not namespace or objects.namespace(obj) == namespace]

    def get(self, resource: Resource, key: str) -> Object | None:
        """`key` as objects.key makes it."""
        return self._known[resource].get(key)

    async def synced(self) -> None:
        """Return once every collection that is not optional has been listed."""
        for event in self._awaited.values():
            await event.wait()

    async def run(self) -> None:
        """Keep up until cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource in self._known:
                group.create_task(self._follow(resource))

    async def _follow(self, resource: Resource) -> None:
        left_over = dict(self._known[resource])  # from a run before this one; what is gone since was told to nobody
        async with aclosing(follow(self._kube, resource)) as stream:
            async for kind, obj in stream:
                left_over.pop(objects.key(obj) if obj else "", None)
                if kind == SYNCED:
                    for each in left_over.values():
                        self._forget(resource, each)
                    left_over.clear()
                    if resource in self._awaited:
                        self._awaited[resource].set()
                elif kind == DELETED:
                    self._forget(resource, obj)
                else:
                    self.note(resource, obj)

    def note(self, resource: Resource, obj: Object) -> None:
        """Take in a state of an object, unless a newer one is known or it is known to be gone."""
        known = self._known.get(resource)
        if known is None or objects.uid(obj) in self._gone:
            return
        before = known.get(objects.key(obj))
        if before is not None and objects.version(before) >= objects.version(obj):
            return
        known[objects.key(obj)] = obj
        self._tell(resource, before, obj)

    def note_deletion(self, resource: Resource, obj: Object, when: str) -> None:
        """A deletion of this state of the object was accepted: it counts as ending until the watch says more."""
        known = self._known.get(resource, {})
        before = known.get(objects.key(obj))
        if before is None or objects.version(before) != objects.version(obj) or objects.is_deleting(before):
            return
        after = {**before, "metadata": {**before["metadata"], "deletionTimestamp": when}}
        known[objects.key(obj)] = after
        self._tell(resource, before, after)

    def _forget(self, resource: Resource, obj: Object) -> None:
        self._gone[objects.uid(obj)] = None
        if len(self._gone) > _TOMBSTONES:
            self._gone.popitem(last=False)
        before = self._known[resource].get(objects.key(obj))
        if before is not None and objects.uid(before) == objects.uid(obj):
            del self._known[resource][objects.key(obj)]
            self._tell(resource, before, None)

    def _tell(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        for listener in list(self._listeners):
            listener(resource, before, after)
