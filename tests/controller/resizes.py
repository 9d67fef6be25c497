"""A controller that resizes pods, and what their node's agent does, over an API server in memory."""

from collections.abc import Callable
from typing import Any

from msgspec import structs

from lamina.controller.binding.placement_lease import PlacementLease
from lamina.controller.resizer import Resizer
from lamina.core.gpus import Gpu
from lamina.core.sizes import RESIZE, RESIZE_STATUS, RESIZE_WHEN_HELD, AppliedSize, size_of
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.pod_stages import pod_state
from lamina.ledger.resize_requests import ResizedPod, resized_pod
from lamina.ledger.ungranted_pods import running_request
from lamina.ports.kube import GRANTS, PODS, EventRecorder, Object
from tests.controller.binders import Bench
from tests.worlds.clocks import SettableClock
from tests.worlds.deaths import Died, Life, mortal
from tests.worlds.objects import gpus, inventory

NODE = "node-0"
MEMORY = 10_000


class Resizing:
    """One node with one GPU of 10000 MiB. `used` is what programs hold, by UID; `sizes` what agents have applied."""

    def __init__(self, kube: Any) -> None:
        self.kube = kube
        self.gpus: tuple[Gpu, ...] = gpus(1, memory=MEMORY)
        self.used: dict[str, int] = {}
        self.sizes: dict[str, AppliedSize] = {}
        self.may_use: dict[str, tuple[int, int]] = {}
        self.clock = SettableClock()
        self.start()

    def start(self) -> None:
        """A controller that knows nothing."""
        self.life = Life()
        port = mortal(self.kube, self.life)
        self.bench = Bench(port, clock=self.clock)
        self.changes = Resizer(
            self.bench.context,
            self.bench.scheduler,
            EventRecorder(self.kube, "lamina-controller", now=self.clock.wall),
            placement_lease=PlacementLease(
                port,
                self.clock,
                "me",
                catch_up=self.bench.watches.catch_up,
                catch_up_namespace=self.bench.watches.catch_up_namespace,
            ),
            locks=self.bench.locks,
            pods=self.requests,
            leading=lambda: self.bench.leads,
        )
        self.observe()

    def objects(self, kind: Any) -> list[Object]:
        return [obj for resource, obj in self.kube.stored() if resource == kind]

    def requests(self) -> dict[str, ResizedPod]:
        found = {obj["metadata"]["uid"]: resized_pod(obj) for obj in self.objects(PODS)}
        return {uid: each for uid, each in found.items() if each is not None}

    def observe(self) -> None:
        """All that watches would report now."""
        ledger = self.bench.ledger
        ledger.observe_inventory(
            structs.replace(inventory(NODE, *self.gpus), resized=tuple(self.sizes[uid] for uid in sorted(self.sizes)))
        )
        for pod in self.objects(PODS):
            parsed = self.bench.parse(pod)
            ledger.observe_pod(pod["metadata"]["uid"], pod_state(pod), self.clock.time, running_request(parsed))
        for grant in self.objects(GRANTS):
            ledger.observe_grant(grant_record(grant))

    async def pod(self, name: str, memory: int, cores: int = 0) -> Object:
        """A pod that runs, or is refused."""
        pod = await self.bench.pod(name, gpumem=memory, **({"gpucores": cores} if cores else {}))
        await self.bench.bind(pod, NODE)
        await self.agent()
        return pod

    async def ask(self, pod: Object, other_size: str, *, when_held: str | None = None) -> None:
        annotations = {RESIZE: other_size, RESIZE_WHEN_HELD: when_held, RESIZE_STATUS: None}
        change = {"metadata": {"annotations": annotations}}
        await self.kube.patch(PODS, pod["metadata"]["name"], change, namespace="default")

    async def step(self, die_at: int = -1) -> bool:
        """The controller goes on once. Returns whether it died; then another one begins."""
        self.life.left = die_at if die_at >= 0 else None
        try:
            await self.changes.reconcile()
        except Died:
            return True
        finally:
            self.life.left = None
            if die_at >= 0:
                self.clock.time += 60
                self.start()
            self.observe()
        return False

    async def agent(self) -> None:
        """It applies each size that a grant has, unless programs hold more."""
        for obj in self.objects(GRANTS):
            grant = grant_record(obj).grant
            (container,), size = grant.containers, size_of(grant.containers[0])
            held = self.used.get(grant.pod_uid, 0)
            before = self.sizes.get(grant.pod_uid)
            waits = held > size.memory_mib
            if not waits:
                self.may_use[grant.pod_uid] = (size.memory_mib, size.cores)
            if container.size is not None and size.generation:
                generation = before.generation if before else 0
                self.sizes[grant.pod_uid] = AppliedSize(
                    pod_uid=grant.pod_uid,
                    container=container.name,
                    generation=generation if waits else size.generation,
                    waiting=f"it holds {held} MiB, more than {size.memory_mib} MiB" if waits else "",
                    held_generation=size.generation if waits else 0,
                    memory_mib=self.may_use[grant.pod_uid][0],
                    cores=self.may_use[grant.pod_uid][1],
                )
        self.observe()

    async def rest(self, most: int = 10) -> None:
        for _ in range(most):
            await self.step()
            await self.agent()

    def status(self, pod: Object) -> str:
        return self.annotation(pod, RESIZE_STATUS)

    def annotation(self, pod: Object, key: str) -> str:
        (found,) = [each for each in self.objects(PODS) if each["metadata"]["uid"] == pod["metadata"]["uid"]]
        return str((found["metadata"].get("annotations") or {}).get(key) or "")

    def check(self) -> None:
        """No GPU is promised twice, and all that may be used is counted."""
        memory = sum(used for used, _ in self.may_use.values())
        assert memory <= MEMORY and sum(cores for _, cores in self.may_use.values()) <= 100, self.may_use
        assert self.bench.memory() >= memory


Course = Callable[[Resizing], Any]
