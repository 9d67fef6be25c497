"""The lab's own store and API in this process, with a fake kubelet and a fake clock."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from lamina.ports.kube import EVENTS, NODES, PODS, Conflict, NotFound, Object, Resource
from lamina_lab.api.in_process import InProcess
from lamina_lab.api.schema.resources import Catalog
from lamina_lab.api.storage.lifecycle import Deletion
from lamina_lab.api.storage.store import Store
from lamina_lab.api.storage.verbs import AdmissionAttributes, Api, Call
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.errors import ApiError
from tests.waiting import canceled
from tests.worlds.clocks import SteppedClock

Pod = dict[str, Any]


class AdmissionGate:
    """Admission that lets everything in, but pods while `refusal` holds a sentence."""

    def __init__(self) -> None:
        self.refusal = ""
        self.asked = 0

    async def mutate(self, review: AdmissionAttributes, call: Call) -> Object:
        assert review.new is not None
        if review.resource.plural == "pods" and review.operation == "CREATE":
            self.asked += 1
            if self.refusal:
                message = f'admission webhook "pods.lamina.dev" denied the request: {self.refusal}'
                raise ApiError(403, "Forbidden", message)
        return review.new

    async def validate(self, review: AdmissionAttributes, call: Call) -> None:
        return None


class LabInProcess:
    """`kube` is the client; `run` starts a loop that `stop` ends."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        self.admission = AdmissionGate()
        self.api = Api(Store(self.clock.wall), Catalog(), self.admission)
        self.kube = InProcess(self.api, "system:test")
        self._tasks: list[asyncio.Task[None]] = []

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    async def stop(self) -> None:
        await canceled(*self._tasks)

    async def create(self, resource: Resource, obj: Object) -> Object:
        space = obj["metadata"].get("namespace", "default") if resource.namespaced else ""
        return await self.kube.create(resource, obj, namespace=space)

    async def change(self, resource: Resource, name: str, body: Object, subresource: str = "") -> Object:
        space = "default" if resource.namespaced else ""
        return await self.kube.patch(resource, name, body, namespace=space, subresource=subresource)

    async def get(self, resource: Resource, name: str, namespace: str = "default") -> Object:
        return await self.kube.get(resource, name, namespace=namespace if resource.namespaced else "")

    async def delete(self, resource: Resource, name: str) -> None:
        await self.kube.delete(resource, name, namespace="default" if resource.namespaced else "")

    def all(self, resource: Resource) -> list[Object]:
        served = self.api.catalog.find(resource.group, resource.version, resource.plural)
        return [version.obj for version in self.api.list(served)]

    def pods(self) -> list[Pod]:
        return [pod for pod in self.all(PODS) if objects.is_active(pod)]

    def events(self, reason: str) -> list[Object]:
        return [event for event in self.all(EVENTS) if event["reason"] == reason]

    async def add_node(self, name: str, **spec: Any) -> Object:
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "20"}
        return await self.create(
            NODES,
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "spec": spec,
                "status": {
                    "capacity": amounts,
                    "allocatable": amounts,
                    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                },
            },
        )


class Kubelet:
    """Binds what has no node, unless it is switched off, and says that pods run, or end, as `answer` has it.

    `answer` gives the phase of a pod: Running pods are ready, None leaves a pod as it is.
    """

    def __init__(self, api: Api, answer: Callable[[Pod], str | None] = lambda pod: "Running") -> None:
        self._api = api
        self._kube = InProcess(api, "system:kubelet")
        self.answer = answer
        self.bind_to: str | None = "n1"

    async def run(self) -> None:
        version = (await self._kube.list(PODS)).version
        await self.again()
        async for watched in self._kube.watch(PODS, version):
            if watched.kind != "DELETED":
                with suppress(NotFound, Conflict, ApiError):
                    await self._look(await self._kube.get(PODS, objects.name(watched.object), namespace="default"))

    async def again(self) -> None:
        """Look at every pod, after `answer` changed."""
        for pod in (await self._kube.list(PODS)).items:
            await self._look(pod)

    async def _look(self, pod: Pod) -> None:
        name = objects.name(pod)
        if objects.is_deleting(pod):
            pods = self._api.catalog.named("pods")
            await self._api.delete(pods, "default", name, Deletion(grace=0), Call())
            return
        if not objects.spec(pod).get("nodeName") and self.bind_to:
            await self._kube.bind(name, namespace="default", uid=objects.uid(pod), node=self.bind_to)
            return
        phase = self.answer(pod)
        if objects.spec(pod).get("nodeName") and phase and phase != objects.phase(pod):
            await self._say(pod, phase)

    async def _say(self, pod: Pod, phase: str) -> None:
        now = self._api.store.now()
        ready = {"type": "Ready", "status": str(phase == "Running"), "lastTransitionTime": now}
        state = {"running": {"startedAt": now}} if phase == "Running" else {"terminated": {"finishedAt": now}}
        status = {
            "phase": phase,
            "conditions": [ready],
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": state}],
        }
        await self._kube.patch(PODS, objects.name(pod), {"status": status}, namespace="default", subresource="status")


def template(labels: dict[str, str], **container: Any) -> Object:
    return {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "busybox:1", **container}]},
    }


def deployment(name: str = "web", replicas: int = 3, **spec: Any) -> Object:
    labels = {"app": name}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template(labels), **spec}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": body}
