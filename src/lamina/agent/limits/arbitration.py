"""Divides each GPU's time between the containers that share it, lends its memory, and answers their processes.

A pod that has had to keep borrowed memory on the host for long is published, so that it may move elsewhere.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from lamina.agent.containers.paths import folder_names, pod_uid_of
from lamina.agent.context import NodeContext
from lamina.agent.limits.context_figures import ContextFigures
from lamina.core.borrowers import MAX_DISPLACED, Borrowers, DisplacedBorrower
from lamina.enforcement.arbitration import Arbitration, Capacity, Confirm, Report
from lamina.enforcement.reserve import fill_reserve
from lamina.ports.host import Host

CALM_S = 5.0
"""A borrower that returns its memory for so long is another case when it is displaced again."""


class DisplacedBorrowers:
    """The pods of one node. `found` are those that have been displaced for as long as the policy says."""

    def __init__(self, policy: Borrowers) -> None:
        self._policy = policy
        self._since: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self.found: tuple[DisplacedBorrower, ...] = ()

    def observe(self, displaced: Mapping[str, Path], pods: Iterable[str], now: float) -> bool:
        """`displaced` are folders of containers by GPU, `pods` the UIDs of pods with grants, `now` is since 1970.
        Returns whether `found` has changed."""
        if not self._policy.seconds:
            return False
        for uid in {pod_uid_of(folder.name) for folder in displaced.values()}.intersection(pods):
            self._since.setdefault(uid, now)
            self._last[uid] = now
        for uid in [uid for uid, last in self._last.items() if now - last > CALM_S]:
            del self._since[uid], self._last[uid]
        due = ((since, uid) for uid, since in self._since.items() if now - since >= self._policy.seconds)
        before = self.found
        self.found = tuple(DisplacedBorrower(pod_uid=uid, since=int(since)) for since, uid in sorted(due))
        self.found = self.found[:MAX_DISPLACED]
        return self.found != before


LOOK_S = 0.1
"""A container may borrow memory once it is attended, and programs take memory as soon as they start."""
BUSY_S, IDLE_S = 0.01, 0.025
PublishDisplaced = Callable[[tuple[DisplacedBorrower, ...]], None]
REST = 4
"""The loop sleeps at least this many times as long as deciding took, so that other work of the agent proceeds."""


class ArbitrationLoop:
    """Without it, containers have their own shares alone, no gate is closed, and contexts cost what is guessed."""

    def __init__(
        self,
        node: NodeContext,
        host: Host,
        confirm: Confirm,
        capacity: Capacity,
        report: Report,
        publish: PublishDisplaced,
    ) -> None:
        """`capacity` is the memory of a GPU; `report` is called with what is wrong with the files of a container, and
        `publish` with the pods that have had to keep borrowed memory on the host, when these change."""
        self._node = node
        self._publish = publish
        self._displaced = DisplacedBorrowers(node.config.borrowers)
        self._host = host
        self._containers = node.paths.containers
        self._files = node.files
        self._clock = node.clock
        self._low_priority_percent = node.config.sharing.low_priority_percent
        self._aside = node.aside
        self._confirm = confirm
        self._capacity = capacity
        self._report = report

    def _failed(self, gpu: str, error: Exception) -> None:
        self._aside.add("time of a GPU", gpu, error)

    def _observe_displaced(self, arbitration: Arbitration) -> None:
        pods = {each.bound.pod_uid for each in self._node.record.allocations if each.bound}
        if self._displaced.observe(arbitration.displaced, pods, self._clock.wall()):
            self._publish(self._displaced.found)

    async def run(self) -> None:
        arbitration = Arbitration(
            low_priority_percent=self._low_priority_percent,
            confirm=self._confirm,
            capacity=self._capacity,
            report=self._report,
            failed=self._failed,
        )
        figures = ContextFigures(self._node, self._host)
        listed_at = self._clock.monotonic() - LOOK_S
        try:
            while True:
                now = self._clock.monotonic()
                if now - listed_at >= LOOK_S:
                    with self._aside.around("directory", str(self._containers)):
                        names = folder_names(self._containers, self._files)
                        arbitration.attend(self._containers / name for name in names)
                        fill_reserve(self._containers)
                        self._observe_displaced(arbitration)
                    listed_at = now
                busy = arbitration.tick(int(now * 1e9))
                figures.answer_requests(arbitration)
                took = self._clock.monotonic() - now
                await self._clock.sleep(max(BUSY_S if busy else IDLE_S, REST * took))
        finally:
            figures.close()
            arbitration.close()
