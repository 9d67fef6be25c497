"""Events of pods, written in the background and in order."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from lamina.ports.kube import PODS, EventRecorder, Kube


class Events:
    """A queue in front of the recorder, so that a pod never waits until an event is written."""

    def __init__(self, kube: Kube, now: Callable[[], float]) -> None:
        self._recorder = EventRecorder(kube, "kubelet", now=now)
        self._queue: asyncio.Queue[tuple[Mapping[str, Any], str, str, bool]] = asyncio.Queue()

    def normal(self, pod: Mapping[str, Any], reason: str, message: str) -> None:
        self._queue.put_nowait((pod, reason, message, False))

    def warning(self, pod: Mapping[str, Any], reason: str, message: str) -> None:
        self._queue.put_nowait((pod, reason, message, True))

    async def run(self) -> None:
        """Never returns."""
        while True:
            pod, reason, message, warning = await self._queue.get()
            await self._recorder.record(PODS, dict(pod), reason, message, warning=warning)
