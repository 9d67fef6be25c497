"""Whatever is lost, repeated, swapped or refused: no GPU is ever promised twice, and in the end nothing is leaked.

Hypothesis plays kube-scheduler, the watches and a bad network against two replicas of the real binder, ledger and
doubts, both of which may believe that they lead. The API server in memory is the truth: what a pod runs with is the
grant that stood there when it was bound.
"""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lamina.configuration import DEFAULT
from lamina.controller import resizer
from lamina.controller.binding import orphan_grants
from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.resizer import Resizer
from lamina.core.gpus import Inventory, Mode
from lamina.core.grants import Grant
from lamina.core.ledger import NOTHING, Taken, taken_by
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.sizes import RESIZE, RESIZE_STATUS, RESIZE_WHEN_HELD, WAIT, AppliedSize, usable
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.holds import GRANT_S
from lamina.ledger.ledger import UNCONFIRMED_S
from lamina.ledger.pod_stages import pod_state
from lamina.ledger.pods import parse_pod
from lamina.ledger.resize_requests import resized_pod
from lamina.ledger.ungranted_pods import running_request
from lamina.ports.kube import GRANTS, PODS, EventRecorder, Object, Resource, Watched
from lamina.ports.kube.fake_network import LossyKube
from tests.controller.binders import Bench
from tests.controller.bound_pods import StartingKube
from tests.worlds.clocks import SettableClock
from tests.worlds.objects import admitted_pod, gpus, inventory

NODES = ("a", "b")
CARD = "A30-24GB"
CUT = ((Mode.MIG, Mode.QUOTA), (Mode.QUOTA, Mode.MIG))
GPUS = {
    "a": gpus(2, memory=1000, prefix="a"),
    "b": tuple(
        msgspec.structs.replace(gpu, mig_card=CARD, modes=modes)
        for gpu, modes in zip(gpus(2, memory=24576, prefix="b"), CUT, strict=True)
    ),
}
SIZES = ({"gpumem": 9000}, {"gpumem": 300}, {"gpumem": 600, "gpucores": 60}, {"gpu": 1}, {"gpu": 2, "gpumem": 400})
REQUESTS = st.sampled_from(["main=100", "main=500,10", "main=900", "main=2000,70", "main=,30", "main=12000", ""])
REPLICAS = st.integers(0, 1)


class PodsAndReplicas(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.server, self.clock = StartingKube(), SettableClock()
        self.kube = LossyKube(self.server)
        self.replicas = [Bench(self.kube, clock=self.clock, name=name) for name in ("one", "two")]
        for replica in self.replicas:
            for node, given in GPUS.items():
                replica.offer(node, *given)
        self.reported: list[tuple[Resource, Watched]] = []
        self.ended: list[tuple[Resource, Watched]] = []
        self.made = 0
        self.applied: dict[str, AppliedSize] = {}
        """What the agents last published, by UID."""
        self.watches = [self.loop.create_task(self._collect(resource)) for resource in (PODS, GRANTS)]

    async def _collect(self, resource: Resource) -> None:
        async for watched in self.kube.watch(resource, "0"):
            self.reported.append((resource, watched))
            if watched.kind == "DELETED":
                self.ended.append((resource, watched))

    def run(self, work: Any) -> Any:
        result = self.loop.run_until_complete(work)
        for replica in self.replicas:
            self.loop.run_until_complete(replica.background.drain())
        return result

    def choose(self, number: int) -> Object | None:
        pods = list(self.server.pods().values())
        return pods[number % len(pods)] if pods else None

    @rule(size=st.sampled_from(SIZES))
    def a_pod_appears(self, size: dict[str, int]) -> None:
        self.made += 1
        self.run(self.server.create(PODS, admitted_pod(f"p{self.made}", **size)))

    @rule(
        numbers=st.lists(st.tuples(st.integers(0, 30), REPLICAS), min_size=1, max_size=5),
        node=st.sampled_from(NODES),
        faults=st.sets(st.sampled_from(LossyKube.FAULTS), max_size=3),
    )
    def pods_are_bound_at_once(self, numbers: list[tuple[int, int]], node: str, faults: set[tuple[str, str]]) -> None:
        self.kube.faults = set(faults)
        chosen = [(pod["metadata"], by) for number, by in numbers if (pod := self.choose(number)) is not None]
        args = [BindArgs(podName=m["name"], podNamespace=m["namespace"], podUID=m["uid"], node=node) for m, _ in chosen]
        binders = [self.replicas[by].binder for _, by in chosen]

        async def all_at_once() -> list[str]:
            return await asyncio.gather(*(by.bind(each) for by, each in zip(binders, args, strict=True)))

        errors = self.run(all_at_once())
        self.kube.faults = set()
        for each, error in zip(args, errors, strict=True):
            bound = self.server.pods()[each.podUID]["spec"].get("nodeName")
            assert error or bound == node

    @rule(number=st.integers(0, 30), phase=st.sampled_from(["Running", "Succeeded", "Failed"]))
    def a_bound_pod_goes_on(self, number: int, phase: str) -> None:
        pod = self.choose(number)
        if pod is None or not pod["spec"].get("nodeName") or pod_state(pod).ended:
            return
        name = pod["metadata"]["name"]
        self.run(self.kube.patch(PODS, name, {"status": {"phase": phase}}, namespace="default", subresource="status"))

    @rule(number=st.integers(0, 30), other_size=REQUESTS, waits=st.booleans())
    def a_user_asks_for_another_size(self, number: int, other_size: str, waits: bool) -> None:
        pod = self.choose(number)
        if pod is not None:
            annotations = {RESIZE: other_size or None, RESIZE_WHEN_HELD: WAIT if waits else None, RESIZE_STATUS: None}
            body = {"metadata": {"annotations": annotations}}
            self.run(self.server.patch(PODS, pod["metadata"]["name"], body, namespace="default"))

    @rule(by=REPLICAS, faults=st.sets(st.sampled_from(LossyKube.FAULTS), max_size=2))
    def a_replica_resizes_pods(self, by: int, faults: set[tuple[str, str]]) -> None:
        """It knows all requests, but of grants and pods only what was reported to it."""
        self.kube.faults = set(faults)
        self.run(sizes_of(self.replicas[by], self.server).reconcile())
        self.kube.faults = set()

    @rule(held=st.sets(st.integers(0, 30), max_size=3))
    def agents_apply_sizes(self, held: set[int]) -> None:
        """All but those of containers whose programs hold more."""
        for number, obj in enumerate(self.server.grants()):
            self._apply(grant_record(obj).grant, holds=number in held)

    def _apply(self, grant: Grant, *, holds: bool) -> None:
        container, before = grant.containers[0], self.applied.get(grant.pod_uid)
        if container.size is None or grant.pod_uid not in self.server.runs_with:
            return
        generation, size = container.size.generation, container.size
        runs = self.server.runs_with[grant.pod_uid]
        had = next(iter(runs.values()))
        holds = holds and size.memory_mib < had.memory_mib
        if not holds:
            self.server.runs_with[grant.pod_uid] = taken_by([usable(container)])
        self.applied[grant.pod_uid] = AppliedSize(
            pod_uid=grant.pod_uid,
            container=container.name,
            generation=(before.generation if before else 0) if holds else generation,
            waiting="it holds more" if holds else "",
            held_generation=generation if holds else 0,
            memory_mib=had.memory_mib if holds else size.memory_mib,
            cores=had.cores if holds else size.cores,
        )

    @rule(by=REPLICAS, node=st.sampled_from(NODES))
    def an_inventory_is_reported(self, by: int, node: str) -> None:
        if self.replicas[by].ledger.inventory(node):
            self.replicas[by].ledger.observe_inventory(self.inventory(node))

    def inventory(self, node: str) -> Inventory:
        return msgspec.structs.replace(inventory(node, *GPUS[node]), resized=tuple(self.applied.values()))

    @rule(number=st.integers(0, 30))
    def a_pod_is_deleted(self, number: int) -> None:
        pod = self.choose(number)
        if pod is not None:
            self.run(self.kube.delete(PODS, pod["metadata"]["name"], namespace="default"))

    @rule(number=st.integers(0, 30))
    def a_grant_is_deleted(self, number: int) -> None:
        grants = self.server.grants()
        if grants:
            meta = grants[number % len(grants)]["metadata"]
            self.run(self.kube.delete(GRANTS, meta["name"], namespace="default"))

    @precondition(lambda self: self.reported)
    @rule(number=st.integers(0, 10_000), forget=st.booleans(), by=REPLICAS)
    def a_watch_reports_something(self, number: int, forget: bool, by: int) -> None:
        """Anything that ever happened, in any order, again and again, or never."""
        index = number % len(self.reported)
        self.report(by, *self.reported[index])
        if forget:
            del self.reported[index]

    @rule(by=REPLICAS, node=st.sampled_from(NODES))
    def an_inventory_goes_and_comes_back(self, by: int, node: str) -> None:
        ledger = self.replicas[by].ledger
        if ledger.inventory(node):
            ledger.remove_inventory(node)
        else:
            ledger.observe_inventory(self.inventory(node))

    @rule(by=REPLICAS)
    def leadership_comes_or_goes(self, by: int) -> None:
        self.replicas[by].leads = not self.replicas[by].leads

    @rule(by=REPLICAS)
    def a_replica_restarts(self, by: int) -> None:
        """With an empty memory, and what a first list tells."""
        self.replicas[by] = Bench(self.kube, clock=self.clock, name="three")
        for node, given in GPUS.items():
            self.replicas[by].offer(node, *given)
        self.listed(by)

    def report(self, by: int, resource: Resource, watched: Watched) -> None:
        obj = watched.object
        ledger, time = self.replicas[by].ledger, self.clock.time
        if resource == PODS and watched.kind == "DELETED":
            ledger.remove_pod(obj["metadata"]["uid"], time)
        elif resource == PODS:
            ledger.observe_pod(obj["metadata"]["uid"], pod_state(obj), time, running_request(parse_pod(obj, DEFAULT)))
        elif watched.kind == "DELETED":
            ledger.remove_grant(obj["metadata"]["uid"], obj["spec"]["podUID"], time)
        else:
            ledger.observe_grant(grant_record(obj))

    @rule(
        seconds=st.sampled_from([1.0, UNCONFIRMED_S, GRANT_S]),
        faults=st.sets(st.sampled_from(LossyKube.FAULTS), max_size=1),
    )
    def time_passes(self, seconds: float, faults: set[tuple[str, str]]) -> None:
        self.clock.time += seconds
        self.kube.faults = set(faults)
        for replica in self.replicas:
            replica.ledger.expire(self.clock.time)
            if replica.leads:
                self.run(orphan_grants.remove_orphan_grants(replica.context, replica.locks))
        self.kube.faults = set()

    def in_use(self) -> dict[str, Taken]:
        """What running pods really hold: the naive sum."""
        total: dict[str, Taken] = {}
        for uid, pod in self.server.pods().items():
            if pod["spec"].get("nodeName") and not pod_state(pod).ended:
                for gpu, taken in self.server.runs_with.get(uid, {}).items():
                    total[gpu] = total.get(gpu, NOTHING).plus(taken)
        return total

    def counted(self, by: int) -> dict[str, Taken]:
        ledger = self.replicas[by].ledger
        return {gpu: taken for node in NODES for gpu, taken in ledger.totals.taken(node).items() if taken != NOTHING}

    @invariant()
    def no_gpu_is_promised_twice(self) -> None:
        whole = {gpu: 0 for given in GPUS.values() for gpu in given}
        in_use = self.in_use()
        for gpu in whole:
            taken = in_use.get(gpu.uuid, NOTHING)
            if taken.instances:
                assert taken.slots == len(taken.instances), "one for each, and no one has the GPU otherwise"
                kinds = {profile.name: profile.size for profile in MIG_CARDS[CARD].profiles}
                MIG_CARDS[CARD].check(sorted(taken.instances, key=lambda each: -kinds[each.profile]))
            assert taken.memory_mib <= gpu.capacity_mib and taken.cores <= 100 and taken.slots <= gpu.slots, taken
            assert not taken.whole or taken.slots == 1, taken

    def teardown(self) -> None:
        try:
            self.settle_down()
            in_use = self.in_use()
            unrecorded = self.server.runs_with.keys() - {grant["spec"]["podUID"] for grant in self.server.grants()}
            for by in range(2):
                counted = self.counted(by)
                assert all(counted[gpu].memory_mib >= taken.memory_mib for gpu, taken in in_use.items())
                assert unrecorded or counted == in_use
            for pod in list(self.server.pods().values()):
                self.run(self.kube.delete(PODS, pod["metadata"]["name"], namespace="default"))
            self.settle_down()
            assert self.counted(0) == self.counted(1) == {} and self.server.grants() == []
        finally:
            for watch in self.watches:
                watch.cancel()
            self.loop.run_until_complete(asyncio.gather(*self.watches, return_exceptions=True))
            self.loop.close()

    def settle_down(self) -> None:
        """Everybody leads, sees all nodes, and sees what a watch reports after a gap; then time passes."""
        for by, replica in enumerate(self.replicas):
            replica.leads = True
            for node, given in GPUS.items():
                replica.offer(node, *given)
            self.listed(by)
        for _ in range(4):
            self.time_passes(GRANT_S + UNCONFIRMED_S, set())
            for _ in range(4):
                self.a_replica_resizes_pods(by=0, faults=set())
                self.agents_apply_sizes(held=set())
                for node in NODES:
                    self.an_inventory_is_reported(by=0, node=node)
            for by in range(2):
                self.listed(by)

    def listed(self, by: int) -> None:
        """Everything that is, and the end of everything that was reported before."""
        for resource, watched in self.ended:
            self.report(by, resource, watched)
        for pod in self.server.pods().values():
            self.report(by, PODS, Watched("MODIFIED", pod))
        for grant in self.server.grants():
            self.report(by, GRANTS, Watched("MODIFIED", grant))


def sizes_of(replica: Bench, server: StartingKube) -> Resizer:
    """The part of a replica that resizes pods. Nothing is remembered there from one step to the next."""
    found = {uid: resized_pod(pod) for uid, pod in server.pods().items()}
    return Resizer(
        replica.context,
        replica.scheduler,
        EventRecorder(server, "lamina", now=lambda: 0.0),
        placement_lease=replica.turns,
        locks=replica.locks,
        pods=lambda: {uid: each for uid, each in found.items() if each is not None},
        leading=lambda: replica.leads,
    )


PodsAndReplicas.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestNeverOverCommitted = PodsAndReplicas.TestCase


def test_two_replicas_that_bind_the_same_pods_at_once_give_no_gpu_twice() -> None:
    cluster = PodsAndReplicas()
    cluster.a_pod_appears(size={"gpumem": 300})
    cluster.a_pod_appears(size={"gpu": 1})
    cluster.pods_are_bound_at_once(faults=set(), node="a", numbers=[(0, 1), (1, 0), (0, 0), (1, 1)])
    cluster.no_gpu_is_promised_twice()
    cluster.teardown()


def test_a_replica_learns_what_another_one_placed_since_it_read_the_node() -> None:
    """Nothing is reported by watches: what the turns make a replica read is all that it knows of the other one."""
    cluster = PodsAndReplicas()
    for _ in range(3):
        cluster.a_pod_appears(size={"gpu": 1})
    for number, by in ((0, 0), (1, 1), (1, 1), (2, 0)):  # the first try of the second one finds its GPU taken
        cluster.pods_are_bound_at_once(faults=set(), node="a", numbers=[(number, by)])
    cluster.no_gpu_is_promised_twice()
    assert sum(bool(pod["spec"].get("nodeName")) for pod in cluster.server.pods().values()) == 2
    cluster.teardown()


def resized(cluster: PodsAndReplicas, other_size: str, *, held: bool = False) -> None:
    """Both GPUs of a node have a pod of 600 MiB that becomes this large; then the other replica gets one of 300."""
    for _ in range(2):
        cluster.a_pod_appears(size={"gpumem": 600, "gpucores": 60})
    cluster.pods_are_bound_at_once(faults=set(), node="a", numbers=[(0, 0), (1, 0)])
    for number in range(2):
        cluster.a_user_asks_for_another_size(number=number, other_size=other_size, waits=True)
    for _ in range(3):
        cluster.a_replica_resizes_pods(by=0, faults=set())
        cluster.agents_apply_sizes(held={0, 1} if held else set())
        cluster.an_inventory_is_reported(by=0, node="a")
    for number in (2, 3):
        cluster.a_pod_appears(size={"gpumem": 600, "gpucores": 60})
        cluster.pods_are_bound_at_once(faults=set(), node="a", numbers=[(number, 1), (number, 1)])
    cluster.no_gpu_is_promised_twice()
    cluster.teardown()


@pytest.mark.parametrize(("other_size", "held"), [("main=900", False), ("main=100,10", False), ("main=100,10", True)])
def test_a_resize_by_one_replica_counts_for_the_other_one(other_size: str, held: bool) -> None:
    resized(PodsAndReplicas(), other_size, held=held)


@pytest.mark.parametrize(
    ("where", "name", "mutant", "held"),
    [
        (Resizer, "_unapplied", lambda self, record: "", True),
        (resizer, "usable", lambda container: msgspec.structs.replace(container, size=None), False),
    ],
)
def test_the_model_finds_planted_defects(
    where: Any, name: str, mutant: Any, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room that is given back too early, and room that is never given back."""
    monkeypatch.setattr(where, name, mutant)
    with pytest.raises(AssertionError):
        resized(PodsAndReplicas(), "main=100,10", held=held)


def test_the_model_finds_a_resize_that_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resizer, "raised", lambda container, size: container)
    with pytest.raises(AssertionError):
        cluster = PodsAndReplicas()
        for _ in range(2):
            cluster.a_pod_appears(size={"gpumem": 300})
        cluster.pods_are_bound_at_once(faults=set(), node="a", numbers=[(0, 0), (1, 0)])
        for number in range(2):
            cluster.a_user_asks_for_another_size(number=number, other_size="main=900", waits=False)
        cluster.a_replica_resizes_pods(by=0, faults=set())
        cluster.agents_apply_sizes(held=set())
        cluster.a_pod_appears(size={"gpumem": 600, "gpucores": 60})
        cluster.pods_are_bound_at_once(faults=set(), node="a", numbers=[(2, 1), (2, 1)])
        cluster.no_gpu_is_promised_twice()
