"""Pod statuses on their way to the API server: the newest of each pod, sent until it has arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lamina.lab.kubelet.api import Api, ApiError, Object

RETRY_S = 0.5


def path_of(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


class StatusWriter:
    """One pod's status writer. Statuses that are overtaken by newer ones are never sent."""

    def __init__(self, api: Api, pod: Mapping[str, Any]) -> None:
        self._api = api
        self._pod = pod
        self._wanted: Object | None = None
        self._sent: Object | None = None
        self._task: asyncio.Task[None] | None = None

    def put(self, status: Object) -> None:
        self._wanted = status
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send(), name=f"status {path_of(self._pod)}")

    async def flush(self) -> None:
        """Wait until the API server has the newest status, or the pod is gone there."""
        if self._task is not None:
            await self._task

    async def delete(self) -> None:
        """Tell the API server that the pod has ended here; it then disappears. Retries until answered."""
        await self.flush()
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": self._pod["metadata"]["uid"]},
        }
        while True:
            try:
                await self._api.delete(path_of(self._pod), body)
                return
            except ApiError as error:
                if error.status in (404, 409):
                    return
            await asyncio.sleep(RETRY_S)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _send(self) -> None:
        while self._wanted != self._sent:
            status = self._wanted
            # The uid makes the call fail where the name has passed to another pod.
            body = {"metadata": {"uid": self._pod["metadata"]["uid"]}, "status": status}
            try:
                await self._api.merge(f"{path_of(self._pod)}/status", body)
                self._sent = status
            except ApiError as error:
                if error.status in (404, 409, 422):
                    return
                await asyncio.sleep(RETRY_S)
