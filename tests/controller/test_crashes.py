"""A replica that crashes or is paused at any of its writes, while another one places pods on the same node."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable

import pytest

from lamina.controller.binding import orphan_grants
from lamina.controller.binding.binder import MAX_ATTEMPT_S
from lamina.controller.binding.placement_lease import PlacementLease
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.holds import GRANT_S
from lamina.ledger.ledger import UNCONFIRMED_S
from lamina.ledger.pod_stages import pod_state
from lamina.ports.kube import GRANTS, LEASES, PODS, Conflict, Object
from lamina.ports.kube.fake_network import DecoratedKube
from tests.controller.binders import Bench
from tests.controller.bound_pods import StartingKube
from tests.waiting import canceled
from tests.worlds.clocks import SettableClock
from tests.worlds.objects import admitted_pod, gpus

NODE, OTHER, GPUS = "a", "b", 3
ONE_NODE, ONE_QUOTA = "node", "quota"
"""What both replicas share: the GPUs of one node, or a quota while each places pods on a node of its own."""
WRITES = ("create", "replace", "patch", "delete", "bind")
CRASHES_BEFORE, CRASHES_AFTER, PAUSES_BEFORE, PAUSES_AFTER = "crashes before", "crashes after", "before", "after"
HOW = (CRASHES_BEFORE, CRASHES_AFTER, PAUSES_BEFORE, PAUSES_AFTER)
FEWEST_WRITES = 5
"""Of two binds: two grants, two bindings and a turn that they may share."""


class StoppingKube(DecoratedKube):
    """Stops before or after the write of this number, counted from 0 when armed, and goes on when `resumed` is set."""

    def __init__(self, kube: StartingKube, number: int, how: str) -> None:
        super().__init__(kube)
        self._number, self._when = number, how.split()[-1]
        self.armed, self._written = False, 0
        self._numbers: dict[asyncio.Task[object] | None, int] = {}
        """By the task that writes, the number of its write."""
        self.stopped, self.resumed = asyncio.Event(), asyncio.Event()

    async def before(self, verb: str) -> None:
        if verb in WRITES and self.armed:
            self._numbers[asyncio.current_task()] = self._written
            self._written += 1
        await self._stop("before", verb)

    async def after(self, verb: str) -> None:
        await self._stop("after", verb)

    async def _stop(self, when: str, verb: str) -> None:
        """Once it has stopped, no call of the replica goes on."""
        number = self._numbers.get(asyncio.current_task()) if verb in WRITES else None
        if number == self._number and when == self._when:
            self.stopped.set()
        if self.stopped.is_set():
            await self.resumed.wait()


class TwoReplicas:
    """Two replicas, and three pods that want a whole GPU each where the first replica has left two of three."""

    def __init__(self, number: int, how: str, shared: str) -> None:
        self.how = how
        self.shared = shared
        self.second = NODE if shared == ONE_NODE else OTHER
        """Where the second replica places pods."""
        self.server, self.clock = StartingKube(), SettableClock()
        self.kube = StoppingKube(self.server, number, how)
        self.one, self.two = self._replica(self.kube, "one"), self._replica(self.server, "two")
        self.pods: list[Object] = []

    def _replica(self, kube: DecoratedKube | StartingKube, name: str) -> Bench:
        made = Bench(kube, clock=self.clock, name=name)
        for node in (NODE, OTHER):
            made.offer(node, *gpus(GPUS, memory=1000, prefix=node))
        if self.shared == ONE_QUOTA:
            hard = {"limits.nvidia.com/gpumem": 1000 * GPUS}
            made.quotas.observe({"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}})
        return made

    async def run(self) -> bool:
        """Returns whether the first replica has stopped at all."""
        first = await self.server.create(PODS, admitted_pod("first", gpu=1))
        assert await self.one.bind(first, NODE) == ""
        self.kube.armed = True
        self.pods = [await self.server.create(PODS, admitted_pod(f"p{number}", gpu=1)) for number in range(3)]
        binds = asyncio.gather(*(self.one.bind(pod, NODE) for pod in self.pods[:2]))
        stopped = asyncio.create_task(self.kube.stopped.wait())
        await asyncio.wait([binds, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not self.kube.stopped.is_set():
            await binds
            return False
        if self.how in (CRASHES_BEFORE, CRASHES_AFTER):
            await canceled(binds)
        for pod in reversed(self.pods):
            if await self.two.bind(pod, self.second):
                await self.two.bind(pod, self.second)  # the first attempt has read what others placed
        self.kube.resumed.set()
        await asyncio.gather(binds, return_exceptions=True)
        return True

    async def settle(self) -> Bench:
        """The second replica leads alone, and time passes; returns a third one that has read everything."""
        for _ in range(3):
            await self._read(self.two)
            self.clock.time += MAX_ATTEMPT_S + GRANT_S + UNCONFIRMED_S
            self.two.ledger.expire(self.clock.time)
            await orphan_grants.remove_orphan_grants(self.two.context, self.two.locks)
            for pod in self.pods:
                await self.two.bind(pod, self.second)
        third = self._replica(self.server, "three")
        await self._read(third)
        return third

    async def _read(self, replica: Bench) -> None:
        for pod in (await self.server.list(PODS)).items:
            replica.ledger.observe_pod(pod["metadata"]["uid"], pod_state(pod), self.clock.time)
        for grant in (await self.server.list(GRANTS)).items:
            replica.ledger.observe_grant(grant_record(grant))

    @property
    def running(self) -> list[str]:
        """The UIDs of pods that have a node."""
        return [uid for uid, pod in self.server.pods().items() if pod["spec"].get("nodeName")]

    @property
    def used(self) -> list[str]:
        """The GPUs of the pods that run, one for each time that one was given."""
        return [gpu for uid in self.running for gpu in self.server.runs_with[uid]]

    def check(self) -> None:
        assert len(self.used) == len(set(self.used)), "a GPU was given twice"
        assert len(self.used) <= GPUS, "a quota was exceeded"
        assert set(self.running) <= set(self.server.runs_with), "a pod was bound without a grant"


EVERY = list(itertools.product(range(FEWEST_WRITES + 2), HOW, (ONE_NODE, ONE_QUOTA)))


@pytest.mark.parametrize(("number", "how", "shared"), EVERY)
async def test_no_gpu_is_given_twice_and_both_are_used(number: int, how: str, shared: str) -> None:
    crash = TwoReplicas(number, how, shared)
    stopped = await crash.run()
    assert stopped or number >= FEWEST_WRITES
    crash.check()
    third = await crash.settle()
    crash.check()
    assert len(crash.running) == GPUS, "what a crash left behind is not free"
    assert len(await third.grants()) == GPUS
    holdings = third.ledger.totals
    assert sorted([*holdings.taken(NODE), *holdings.taken(OTHER)]) == sorted(crash.used)


async def without_turns(turns: PlacementLease, node: str, check: Callable[[], None], *, namespace: str = "") -> None:
    """A mutant: no turn is taken."""
    check()


async def lost_turns_count(turns: PlacementLease, begun_before: int) -> None:
    """A mutant: a turn that another replica had in between does no harm."""
    lease = turns._lease
    with contextlib.suppress(Conflict):
        turns._lease = await turns._kube.replace(LEASES, turns._renewed(lease or {}))
    turns._begun += 1
    turns._done = turns._begun


async def nodes_alone(turns: PlacementLease, node: str, check: Callable[[], None], *, namespace: str = "") -> None:
    """A mutant: what others hold in the namespace is not read."""
    await TAKE(turns, node, check)


TAKE = PlacementLease.take


@pytest.mark.parametrize(
    ("method", "mutant", "shared"),
    [
        ("take", without_turns, ONE_NODE),
        ("take", without_turns, ONE_QUOTA),
        ("_turn", lost_turns_count, ONE_NODE),
        ("_turn", lost_turns_count, ONE_QUOTA),
        ("take", nodes_alone, ONE_QUOTA),
    ],
)
async def test_turns_are_what_prevents_it(
    monkeypatch: pytest.MonkeyPatch, method: str, mutant: object, shared: str
) -> None:
    """Some of these crashes give too much if the order of turns is not kept."""
    monkeypatch.setattr(PlacementLease, method, mutant)
    wrong = 0
    for number, how in itertools.product(range(FEWEST_WRITES + 2), HOW):
        crash = TwoReplicas(number, how, shared)
        await crash.run()
        try:
            crash.check()
        except AssertionError:
            wrong += 1
    assert wrong
