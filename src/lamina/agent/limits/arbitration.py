"""Divides each GPU's time between the containers that share it, lends its memory, and answers their processes."""

from collections.abc import Callable

from lamina.agent.containers.paths import folder_names
from lamina.agent.context import NodeContext
from lamina.agent.limits.context_figures import ContextFigures
from lamina.agent.limits.displaced import DisplacedBorrowers
from lamina.core.borrowers import DisplacedBorrower
from lamina.enforcement.arbitration import Arbitration, Capacity, Confirm, Report
from lamina.enforcement.reserve import fill_reserve
from lamina.ports.host import Host

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
        self._low_priority_percent = node.config.low_priority_percent
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
                figures.look(arbitration)
                took = self._clock.monotonic() - now
                await self._clock.sleep(max(BUSY_S if busy else IDLE_S, REST * took))
        finally:
            figures.close()
            arbitration.close()
