"""Reports what containers have made of their limit files: once for each container and problem, in the log, in a metric
and as an event on the pod."""

import asyncio
import contextlib
from pathlib import Path
from typing import NamedTuple

from lamina.agent.containers.paths import folder_name
from lamina.agent.context import NodeContext
from lamina.agent.state.holdings import Bound
from lamina.errors import BadInput
from lamina.ports.kube import PODS

KIND = "ContainerFiles"
_MOST = 1000
"""Events that wait for the API server; more are only logged."""


class _Event(NamedTuple):
    bound: Bound
    problem: str


class FileEvents:
    """`report` never waits, because the loop that calls it must not; `run` writes the events."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._waiting: asyncio.Queue[_Event] = asyncio.Queue(_MOST)

    def report(self, folder: Path, problem: str) -> None:
        """Report a problem with the files in the directory of a container."""
        bound = self._bound(folder.name)
        name = f"{bound.namespace}/{bound.pod}, container {bound.container}" if bound else folder.name
        if self._node.aside.add(KIND, name, BadInput(problem)) and bound is not None:
            with contextlib.suppress(asyncio.QueueFull):
                self._waiting.put_nowait(_Event(bound, problem))

    async def run(self) -> None:
        while True:
            bound, problem = await self._waiting.get()
            pod = {"metadata": {"namespace": bound.namespace, "name": bound.pod, "uid": bound.pod_uid}}
            message = f"container {bound.container}: {problem}"
            await self._node.events.record(PODS, pod, "LimitFilesChanged", message, warning=True)

    def _bound(self, folder: str) -> Bound | None:
        bounds = (allocation.bound for allocation in self._node.record.allocations if allocation.bound)
        return next((each for each in bounds if folder_name(each.pod_uid, each.container) == folder), None)
