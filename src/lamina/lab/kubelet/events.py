"""Events about pods. A repeated event is counted on its first record, as kubectl shows it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from lamina.lab.api.moments import rfc3339
from lamina.lab.kubelet.api import Api, ApiError, Object

REMEMBERED = 1000  # records whose repetition is still counted


class Recorder:
    """Sends events in the background, in order; one that cannot be sent is dropped, as kubelet does in the end."""

    def __init__(self, api: Api, node: str, now: Callable[[], float]) -> None:
        self._api = api
        self._node = node
        self._now = now
        self._known: dict[tuple[str, str, str], Object] = {}
        self._queue: asyncio.Queue[tuple[tuple[str, str, str], Object]] = asyncio.Queue()

    def emit(self, pod: Mapping[str, Any], kind: str, reason: str, message: str, container: str = "") -> None:
        """`kind` is Normal or Warning; `container` names the one that it is about."""
        key = (pod["metadata"]["uid"], reason, message)
        self._queue.put_nowait((key, self._record(pod, kind, reason, message, container)))

    async def run(self) -> None:
        while True:
            key, record = await self._queue.get()
            try:
                self._known[key] = await self._send(self._known.get(key), record)
            except ApiError:
                continue
            if len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]

    async def _send(self, known: Object | None, record: Object) -> Object:
        path = f"/api/v1/namespaces/{record['metadata']['namespace']}/events"
        if known is not None:
            again = {"count": known["count"] + 1, "lastTimestamp": record["lastTimestamp"]}
            try:
                return await self._api.merge(f"{path}/{known['metadata']['name']}", again)
            except ApiError as error:
                if error.status != 404:
                    raise
        return await self._api.post(path, record)

    def _record(self, pod: Mapping[str, Any], kind: str, reason: str, message: str, container: str) -> Object:
        metadata = pod["metadata"]
        when = rfc3339(self._now())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}.{secrets.token_hex(8)}", "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
                **({"fieldPath": _field_path(pod, container)} if container else {}),
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": self._node},
            "reportingComponent": "kubelet",
            "reportingInstance": self._node,
            "firstTimestamp": when,
            "lastTimestamp": when,
            "count": 1,
        }


def _field_path(pod: Mapping[str, Any], container: str) -> str:
    inits = [entry["name"] for entry in pod["spec"].get("initContainers") or ()]
    return f"spec.{'initContainers' if container in inits else 'containers'}{{{container}}}"
