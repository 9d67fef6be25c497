"""A replica that crashes or is paused at any of its writes, while another one places pods on the same node."""

import asyncio
import itertools

import pytest

from lamina.controller.binding import orphan_grants
from lamina.controller.binding.binder import LONGEST_ATTEMPT_S
from lamina.controller.binding.turns import Turns
from lamina.controller.ledger.grant_objects import grant_record
from lamina.controller.ledger.ledger import RESERVATION_S, UNCONFIRMED_S
from lamina.controller.ledger.pod_stages import pod_state
from lamina.ports.kube import GRANTS, PODS, Object
from lamina.ports.kube.fake_network import DecoratedKube
from tests.controller.binders import Bench, Clock
from tests.controller.bound_pods import StartingKube
from tests.controller.cluster import admitted_pod, gpus

NODE, GPUS = "a", 3
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


class Crash:
    """Two replicas, and three pods that want a whole GPU each where the first replica has left two of three."""

    def __init__(self, number: int, how: str) -> None:
        self.how = how
        self.server, self.clock = StartingKube(), Clock()
        self.kube = StoppingKube(self.server, number, how)
        self.one, self.two = self._replica(self.kube, "one"), self._replica(self.server, "two")
        self.pods: list[Object] = []

    def _replica(self, kube: DecoratedKube | StartingKube, name: str) -> Bench:
        made = Bench(kube, clock=self.clock, name=name)
        made.offer(NODE, *gpus(GPUS, memory=1000))
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
            binds.cancel()
            await asyncio.gather(binds, return_exceptions=True)
        for pod in reversed(self.pods):
            await self.two.bind(pod, NODE)
        self.kube.resumed.set()
        await asyncio.gather(binds, return_exceptions=True)
        return True

    async def settle(self) -> Bench:
        """The second replica leads alone, and time passes; returns a third one that has read everything."""
        for _ in range(3):
            await self._read(self.two)
            self.clock.time += LONGEST_ATTEMPT_S + RESERVATION_S + UNCONFIRMED_S
            self.two.ledger.expire(self.clock.time)
            await orphan_grants.remove_orphan_grants(self.two.context, self.two.locks)
            for pod in self.pods:
                await self.two.bind(pod, NODE)
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
        assert set(self.running) <= set(self.server.runs_with), "a pod was bound without a grant"


EVERY = list(itertools.product(range(FEWEST_WRITES + 2), HOW))


@pytest.mark.parametrize(("number", "how"), EVERY)
async def test_no_gpu_is_given_twice_and_both_are_used(number: int, how: str) -> None:
    crash = Crash(number, how)
    stopped = await crash.run()
    assert stopped or number >= FEWEST_WRITES
    crash.check()
    third = await crash.settle()
    crash.check()
    assert len(crash.running) == GPUS, "what a crash left behind is not free"
    assert len(await third.grants()) == GPUS
    assert sorted(third.ledger.holdings.taken(NODE)) == sorted(crash.used)


async def test_turns_are_what_prevents_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the order of turns, some of these crashes give a GPU twice."""

    async def check_only(turns: Turns, name: str, check: object) -> None:
        assert callable(check)
        check()

    monkeypatch.setattr(Turns, "take", check_only)
    given_twice = 0
    for number, how in EVERY:
        crash = Crash(number, how)
        await crash.run()
        given_twice += len(crash.used) != len(set(crash.used))
    assert given_twice
