"""The loop that all controllers share: changes become keys, keys are synced one at a time, failures back off.

A controller is level-triggered: `sync` looks at the current state and takes the next step. Nothing depends on having
observed a particular event, and every object is synced from time to time.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import Conflict, NotFound, Object, Resource
from lamina_lab.informer.cache import Cache
from lamina_lab.informer.workqueue import WorkQueue
from lamina_lab.kubernetes import objects

log = logging.getLogger(__name__)

RESYNC_S = 30.0
WORKERS = 4
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.02, 30.0


class Reconciler(Protocol):
    """Brings one kind of object to the state that its spec describes."""

    @property
    def kind(self) -> Resource:
        """The kind whose keys are synced."""
        ...

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        """Keys of this kind that are affected by a change of `obj`, which is of another kind."""
        ...

    async def sync(self, key: str) -> float | None:
        """Sync one object. Returns the seconds after which to sync again; None waits for a change."""
        ...


class ControllerLoop:
    """Runs one controller."""

    def __init__(self, controller: Reconciler, cache: Cache, clock: Clock) -> None:
        self._controller = controller
        self._cache = cache
        self._clock = clock
        self._queue = WorkQueue(clock)
        self._failures: dict[str, int] = {}

    async def run(self) -> None:
        """Run until canceled. A failure of one object delays that object only."""
        stop = self._cache.listen(self._changed)
        try:
            await self._cache.synced()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._resync())
                for _ in range(WORKERS):
                    group.create_task(self._work())
        finally:
            stop()

    def _changed(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        for obj in (before, after):
            if obj is None:
                continue
            if resource == self._controller.kind:
                self._queue.add(objects.key(obj))
            else:
                for key in self._controller.concerned(resource, obj):
                    self._queue.add(key)

    async def _resync(self) -> None:
        while True:
            for obj in self._cache.list(self._controller.kind):
                self._queue.add(objects.key(obj))
            await self._clock.sleep(RESYNC_S)

    async def _work(self) -> None:
        while True:
            key = await self._queue.take()
            try:
                await self._sync(key)
            finally:
                self._queue.done(key)

    async def _sync(self, key: str) -> None:
        kind = self._controller.kind.kind
        try:
            again = await self._controller.sync(key)
        except (Conflict, NotFound) as error:
            log.debug("%s %s changed in the meantime: %s", kind, key, error)
        except Outside as error:
            log.warning("%s %s is retried later: %s", kind, key, error)
        except Exception:
            log.exception("%s %s failed to sync", kind, key)
        else:
            self._failures.pop(key, None)
            if again is not None:
                self._queue.add_after(key, again)
            return
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._queue.add_after(key, min(_MAX_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** (failures - 1)))
