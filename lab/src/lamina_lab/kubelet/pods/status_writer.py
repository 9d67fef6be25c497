"""Writes a pod's status to the API server: the newest one, until it arrives."""

import asyncio
from collections.abc import Mapping
from typing import Any

from lamina.errors import Outside
from lamina.ports.kube import PODS, Conflict, Kube, NotFound, Object, Refused

RETRY_S = 0.5


class StatusWriter:
    """The writer of one pod's status. A status that is replaced by a newer one is never sent."""

    def __init__(self, kube: Kube, pod: Mapping[str, Any], retry_s: float = RETRY_S) -> None:
        self._kube = kube
        self._retry_s = retry_s
        self._name: str = pod["metadata"]["name"]
        self._namespace: str = pod["metadata"]["namespace"]
        self._uid: str = pod["metadata"]["uid"]
        self._wanted: Object | None = None
        self._sent: Object | None = None
        self._task: asyncio.Task[None] | None = None

    def put(self, status: Object) -> None:
        self._wanted = status
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send(), name=f"status of {self._uid}")

    async def flush(self) -> None:
        """Wait until the newest status has arrived, or cannot because the pod is deleted."""
        if self._task is not None:
            await self._task

    async def delete(self) -> None:
        """Report that the pod has ended here, which removes it. Retries until the API server answers."""
        await self.flush()
        while True:
            try:
                await self._kube.delete(PODS, self._name, namespace=self._namespace, uid=self._uid, grace_s=0)
                return
            except (NotFound, Conflict):
                return
            except Outside:
                await asyncio.sleep(self._retry_s)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _send(self) -> None:
        while self._wanted != self._sent:
            status = self._wanted
            # The uid makes the call fail if another pod has the name now.
            body = {"metadata": {"uid": self._uid}, "status": status}
            try:
                await self._kube.patch(PODS, self._name, body, namespace=self._namespace, subresource="status")
                self._sent = status
            except (NotFound, Conflict):
                return
            except Refused as error:
                print(f"the status of pod {self._namespace}/{self._name} was refused: {error}", flush=True)
                return
            except Outside:
                await asyncio.sleep(self._retry_s)
