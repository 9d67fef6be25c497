"""A cluster with the lab's scheduler and an extender on a real port."""

import asyncio
from typing import Any

from lamina.ports.kube import PODS
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.run import run
from tests.lab_controllers.cluster import LabInProcess
from tests.lab_scheduler.extenders import GPU, FakeExtender


def pod(name: str, *, gpu: int = 0, cpu: str = "", **spec: Any) -> dict[str, Any]:
    limits = {GPU: str(gpu)} if gpu else {}
    limits |= {"cpu": cpu} if cpu else {}
    container = {"name": "main", "image": "busybox:1", "resources": {"limits": limits}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container], **spec}}


class SchedulerCluster(LabInProcess):
    """A cluster with a scheduler and an extender; `capacity` is how many GPU pods the extender takes on a node."""

    def __init__(self) -> None:
        super().__init__()
        self.extender = FakeExtender(self.kube)
        self.capacity = 1000
        self.reserved: dict[str, set[str]] = {}
        self.extender.rule = self._full
        self.extender.before_bind = self._reserve

    def _full(self, pod: dict[str, Any], node: str) -> str:
        alive = {objects.uid(each) for each in self.pods()}
        free = self.capacity - len(self.reserved.get(node, set()) & alive)
        return "" if free > 0 else f"needs 1 slot; the best GPU has {free} free"

    async def _reserve(self, body: dict[str, Any]) -> str:
        refusal = self._full({}, body["Node"])
        if not refusal:
            self.reserved.setdefault(body["Node"], set()).add(body["PodUID"])
        return refusal

    def start(self, **config: Any) -> asyncio.Task[None]:
        return self.run(run(self.kube, self.extender.config(**config), self.clock))

    def node_of(self, name: str) -> str:
        return str(objects.spec(self._named(name)).get("nodeName", ""))

    def why(self, name: str) -> str:
        condition = objects.condition(self._named(name), "PodScheduled") or {}
        return str(condition.get("message", "")) if condition.get("status") == "False" else ""

    def _named(self, name: str) -> dict[str, Any]:
        return next((each for each in self.all(PODS) if objects.name(each) == name), {})

    def bound(self) -> list[dict[str, Any]]:
        return [each for each in self.pods() if objects.spec(each).get("nodeName")]
