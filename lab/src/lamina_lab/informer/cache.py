"""The observed state of the cluster: collections updated by watches and by the owner's own writes.

A loop must not act on a state older than its own last write, or it does things twice. So the result of each write is
noted here at once, and a watch event older than the known state is ignored.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import aclosing

from lamina.ports.clock import Clock
from lamina.ports.kube import Kube, Object, Resource, follow
from lamina.ports.kube.follow import DELETED, SYNCED
from lamina_lab.kubernetes import objects

Listener = Callable[[Resource, Object | None, Object | None], None]
"""Called for each change: the collection, the object before (None: it is new) and after (None: it is deleted)."""

_TOMBSTONES = 8192


class Cache:
    """Objects by collection. `optional` collections may not be served yet; `synced` does not wait for them."""

    def __init__(
        self, kube: Kube, clock: Clock, resources: Iterable[Resource], optional: Iterable[Resource] = ()
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._known: dict[Resource, dict[str, Object]] = {resource: {} for resource in (*resources, *optional)}
        self._awaited = {resource: asyncio.Event() for resource in resources}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every change, after it is visible here, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        known = self._known[resource].values()
        return [obj for obj in known if not namespace or objects.namespace(obj) == namespace]

    def get(self, resource: Resource, key: str) -> Object | None:
        """The object with this key (see objects.key)."""
        return self._known[resource].get(key)

    async def synced(self) -> None:
        """Return once every collection that is not optional has been listed."""
        for event in self._awaited.values():
            await event.wait()

    async def run(self) -> None:
        """Keep the collections up to date until canceled."""
        async with asyncio.TaskGroup() as group:
            for resource in self._known:
                group.create_task(self._follow(resource))

    async def _follow(self, resource: Resource) -> None:
        unseen = dict(self._known[resource])  # from an earlier run: deletions since then were not reported
        async with aclosing(follow(self._kube, self._clock, resource)) as stream:
            async for kind, obj in stream:
                unseen.pop(objects.key(obj) if obj else "", None)
                if kind == SYNCED:
                    for obj in unseen.values():
                        self._forget(resource, obj)
                    unseen.clear()
                    if resource in self._awaited:
                        self._awaited[resource].set()
                elif kind == DELETED:
                    self._forget(resource, obj)
                else:
                    self.note(resource, obj)

    def note(self, resource: Resource, obj: Object) -> None:
        """Take in the state of an object, unless a newer one is known or the object is known to be deleted."""
        known = self._known.get(resource)
        if known is None or objects.uid(obj) in self._gone:
            return
        before = known.get(objects.key(obj))
        if before is not None and objects.version(before) >= objects.version(obj):
            return
        known[objects.key(obj)] = obj
        self._tell(resource, before, obj)

    def note_deletion(self, resource: Resource, obj: Object, when: str) -> None:
        """The deletion of this state was accepted: treat the object as terminating until the watch reports more."""
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
