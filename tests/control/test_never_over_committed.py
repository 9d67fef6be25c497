"""Whatever is lost, repeated, swapped or refused: no GPU is ever promised twice, and in the end nothing is leaked.

Hypothesis plays kube-scheduler, the watches and a bad network against the real binder, ledger and doubts. The API
server in memory is the truth: what a pod runs with is the grant that stood there when it was bound.
"""

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lamina.control import doubts
from lamina.control.background import Background
from lamina.control.binding import BindArgs, Binder
from lamina.control.capacity import Capacity
from lamina.control.configuration import Configuration
from lamina.control.decisions import Decisions
from lamina.control.grant_objects import grant_record
from lamina.control.ledger import DOUBT_S, RESERVATION_S
from lamina.control.pod_locks import PodLocks
from lamina.control.quotas import Quotas
from lamina.control.stages import pod_state
from lamina.dialects.config import Config
from lamina.model.ledger import NOTHING, Taken, taken_by
from lamina.ports.kube import GRANTS, PODS, Object, Resource, Unreachable, Watched
from lamina.ports.kube.fake import FakeKube
from tests.control.cluster import admitted_pod, gpus, inventory

NODES = ("a", "b")
GPUS = {node: gpus(2, memory=1000, prefix=node) for node in NODES}
SIZES = ({"gpumem": 300}, {"gpumem": 600, "gpucores": 60}, {"gpu": 1}, {"gpu": 2, "gpumem": 400})
FAULTS = [(verb, when) for verb in ("create", "bind", "delete", "get", "patch") for when in ("before", "after")]


class LossyKube(FakeKube):
    """Loses requests (before) or answers (after), as told, each once. Notes with what each pod was bound."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: set[tuple[str, str]] = set()
        self.runs_with: dict[str, dict[str, Taken]] = {}

    async def _called(self, verb: str, resource: Resource, name: str) -> None:
        await super()._called(verb, resource, name)
        self._lose(verb, "before")

    def _lose(self, verb: str, when: str) -> None:
        if (verb, when) in self.faults:
            self.faults.remove((verb, when))
            raise Unreachable(f"lost {when} {verb}")

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        made = await super().create(resource, obj, namespace=namespace)
        self._lose("create", "after")
        return made

    async def delete(self, resource: Resource, name: str, *, namespace: str = "", uid: str = "") -> None:
        await super().delete(resource, name, namespace=namespace, uid=uid)
        self._lose("delete", "after")

    async def bind(self, pod: str, *, namespace: str, uid: str, node: str) -> None:
        await super().bind(pod, namespace=namespace, uid=uid, node=node)
        for obj in self._objects.values():
            if obj["kind"] == "Grant" and obj["spec"]["podUID"] == uid and obj["spec"]["node"] == node:
                self.runs_with[uid] = taken_by(grant_record(obj).grant.containers)
        self._lose("bind", "after")

    def pods(self) -> dict[str, Object]:
        return {obj["metadata"]["uid"]: obj for obj in self._objects.values() if obj["kind"] == "Pod"}

    def grants(self) -> list[Object]:
        return [obj for obj in self._objects.values() if obj["kind"] == "Grant"]


class Cluster(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.kube = LossyKube()
        configuration = Configuration(Config(), "")
        capacity, quotas = Capacity(configuration), Quotas()
        self.ledger, self.locks, self.background = capacity.ledger, PodLocks(), Background()
        self.time = 1000.0
        decisions = Decisions(capacity, quotas, configuration)
        self.binder = Binder(
            self.kube,
            self.ledger,
            decisions,
            configuration,
            now=lambda: self.time,
            wall=lambda: self.time,
            background=self.background,
            locks=self.locks,
        )
        for node, given in GPUS.items():
            self.ledger.inventory_seen(inventory(node, *given))
        self.told: list[tuple[Resource, Watched]] = []
        self.made = 0
        self.watches = [self.loop.create_task(self._collect(resource)) for resource in (PODS, GRANTS)]

    async def _collect(self, resource: Resource) -> None:
        async for watched in self.kube.watch(resource, "0"):
            self.told.append((resource, watched))

    def run(self, work: Any) -> Any:
        result = self.loop.run_until_complete(work)
        self.loop.run_until_complete(self.background.drain())
        return result

    def choose(self, number: int) -> Object | None:
        pods = list(self.kube.pods().values())
        return pods[number % len(pods)] if pods else None

    @rule(size=st.sampled_from(SIZES))
    def a_pod_appears(self, size: dict[str, int]) -> None:
        self.made += 1
        self.run(FakeKube.create(self.kube, PODS, admitted_pod(f"p{self.made}", **size)))

    @rule(
        numbers=st.lists(st.integers(0, 30), min_size=1, max_size=5),
        node=st.sampled_from(NODES),
        faults=st.sets(st.sampled_from(FAULTS), max_size=3),
    )
    def pods_are_bound_at_once(self, numbers: list[int], node: str, faults: set[tuple[str, str]]) -> None:
        self.kube.faults = set(faults)
        chosen = [pod for number in numbers if (pod := self.choose(number)) is not None]
        args = [
            BindArgs(podName=m["name"], podNamespace=m["namespace"], podUID=m["uid"], node=node)
            for m in (pod["metadata"] for pod in chosen)
        ]

        async def all_at_once() -> list[str]:
            return await asyncio.gather(*(self.binder.bind(each) for each in args))

        errors = self.run(all_at_once())
        self.kube.faults = set()
        for each, error in zip(args, errors, strict=True):
            bound = self.kube.pods()[each.podUID]["spec"].get("nodeName")
            assert error or bound == node

    @rule(number=st.integers(0, 30), phase=st.sampled_from(["Running", "Succeeded", "Failed"]))
    def a_bound_pod_goes_on(self, number: int, phase: str) -> None:
        pod = self.choose(number)
        if pod is None or not pod["spec"].get("nodeName") or pod_state(pod).over:
            return
        name = pod["metadata"]["name"]
        self.run(self.kube.patch(PODS, name, {"status": {"phase": phase}}, namespace="default", subresource="status"))

    @rule(number=st.integers(0, 30))
    def a_pod_is_deleted(self, number: int) -> None:
        pod = self.choose(number)
        if pod is not None:
            self.run(self.kube.delete(PODS, pod["metadata"]["name"], namespace="default"))

    @rule(number=st.integers(0, 30))
    def somebody_deletes_a_grant(self, number: int) -> None:
        grants = self.kube.grants()
        if grants:
            meta = grants[number % len(grants)]["metadata"]
            self.run(self.kube.delete(GRANTS, meta["name"], namespace="default"))

    @precondition(lambda self: self.told)
    @rule(number=st.integers(0, 10_000), forget=st.booleans())
    def a_watch_tells_something(self, number: int, forget: bool) -> None:
        """Anything that ever happened, in any order, again and again, or never."""
        index = number % len(self.told)
        self.tell(*self.told[index])
        if forget:
            del self.told[index]

    def tell(self, resource: Resource, watched: Watched) -> None:
        obj = watched.object
        if resource == PODS and watched.kind == "DELETED":
            self.ledger.pod_gone(obj["metadata"]["uid"], self.time)
        elif resource == PODS:
            self.ledger.pod_seen(obj["metadata"]["uid"], pod_state(obj), self.time)
        elif watched.kind == "DELETED":
            self.ledger.grant_gone(obj["metadata"]["uid"], obj["spec"]["podUID"], self.time)
        else:
            self.ledger.grant_seen(grant_record(obj))

    @rule(seconds=st.sampled_from([1.0, DOUBT_S, RESERVATION_S]), faults=st.sets(st.sampled_from(FAULTS), max_size=1))
    def time_passes(self, seconds: float, faults: set[tuple[str, str]]) -> None:
        self.time += seconds
        self.kube.faults = set(faults)
        self.ledger.tick(self.time)
        self.run(doubts.settle(self.kube, self.ledger, self.locks, lambda: self.time))
        self.kube.faults = set()

    def in_use(self) -> dict[str, Taken]:
        """What running pods really hold: the naive sum."""
        total: dict[str, Taken] = {}
        for uid, pod in self.kube.pods().items():
            if pod["spec"].get("nodeName") and not pod_state(pod).over:
                for gpu, taken in self.kube.runs_with.get(uid, {}).items():
                    total[gpu] = total.get(gpu, NOTHING).plus(taken)
        return total

    def counted(self) -> dict[str, Taken]:
        return {gpu: taken for node in NODES for gpu, taken in self.ledger.taken(node).items() if taken != NOTHING}

    @invariant()
    def no_gpu_is_promised_twice(self) -> None:
        whole = {gpu: 0 for given in GPUS.values() for gpu in given}
        in_use = self.in_use()
        for gpu in whole:
            taken = in_use.get(gpu.uuid, NOTHING)
            assert taken.memory_mib <= gpu.capacity_mib and taken.cores <= 100 and taken.slots <= gpu.slots, taken
            assert not taken.whole or taken.slots == 1, taken

    def teardown(self) -> None:
        try:
            self.relisted()
            for _ in range(4):
                self.time_passes(RESERVATION_S + DOUBT_S, set())
            assert self.counted() == self.in_use()
            for pod in list(self.kube.pods().values()):
                self.run(self.kube.delete(PODS, pod["metadata"]["name"], namespace="default"))
            self.relisted()
            self.time_passes(RESERVATION_S, set())
            assert self.counted() == {} and self.kube.grants() == []
        finally:
            for watch in self.watches:
                watch.cancel()
            self.loop.run_until_complete(asyncio.gather(*self.watches, return_exceptions=True))
            self.loop.close()

    def relisted(self) -> None:
        """What `follow` tells after a gap: everything that is, and the end of everything that was told before."""
        for resource, watched in self.told:
            if watched.kind == "DELETED":
                self.tell(resource, watched)
        for pod in self.kube.pods().values():
            self.tell(PODS, Watched("MODIFIED", pod))
        for grant in self.kube.grants():
            self.tell(GRANTS, Watched("MODIFIED", grant))


Cluster.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestNeverOverCommitted = Cluster.TestCase
