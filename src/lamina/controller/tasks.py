"""Tasks of the controller: those that no caller waits for, and one at a time for each pod."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine
from typing import Any

log = logging.getLogger(__name__)


class BackgroundTasks:
    """Starts tasks that no caller waits for, and keeps references to them.

    None is lost: a failure is logged, and the program waits for them when it ends.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def drain(self, *, grace_s: float = 5.0) -> None:
        """Wait until all have ended, including those started meanwhile; cancel what takes longer than `grace_s`."""
        deadline = asyncio.get_running_loop().time() + grace_s
        while self._tasks and (left := deadline - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(self._tasks, timeout=left)
        for task in self._tasks:
            task.cancel()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("A background task failed", exc_info=task.exception())


class PodLocks:
    """Only one task at a time works on a pod, and work on different pods runs concurrently.

    One lock per pod UID, kept while a task holds it or waits for it.
    """

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @contextlib.asynccontextmanager
    async def of(self, uid: str) -> AsyncIterator[None]:
        lock, users = self._locks.get(uid, (asyncio.Lock(), 0))
        self._locks[uid] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks[uid]
            if users == 1:
                del self._locks[uid]
            else:
                self._locks[uid] = lock, users - 1
