"""The pods bound to this node, as a list followed by changes, for as long as the kubelet runs."""

from __future__ import annotations

import asyncio
from typing import Protocol

from lamina.lab.kubelet.api import Api, ApiError, Object

RETRY_S = 0.5


class Audience(Protocol):
    """Whoever wants to know: all pods at once, then one at a time."""

    def listed(self, pods: list[Object]) -> None: ...

    def seen(self, pod: Object) -> None: ...

    def gone(self, pod: Object) -> None: ...


async def follow(api: Api, node: str, audience: Audience) -> None:
    """Never returns. A list is taken anew whenever a watch cannot go on where it ended."""
    selector = {"fieldSelector": f"spec.nodeName={node}"}
    version = ""
    while True:
        try:
            if not version:
                answer = await api.get("/api/v1/pods", selector)
                audience.listed(answer.get("items") or [])
                version = answer["metadata"]["resourceVersion"]
            version = await _watch(api, selector, version, audience)
        except ApiError:
            version = ""
            await asyncio.sleep(RETRY_S)


async def _watch(api: Api, selector: dict[str, str], version: str, audience: Audience) -> str:
    """Pass on events; returns the version to go on from, empty after an error event."""
    params = {**selector, "resourceVersion": version, "allowWatchBookmarks": "true"}
    async for event in api.watch("/api/v1/pods", params):
        pod = event["object"]
        if event["type"] == "ERROR":
            return ""
        version = pod["metadata"]["resourceVersion"]
        if event["type"] in ("ADDED", "MODIFIED"):
            audience.seen(pod)
        elif event["type"] == "DELETED":
            audience.gone(pod)
    return version
