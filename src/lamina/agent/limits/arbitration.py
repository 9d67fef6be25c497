"""Divides each GPU's time between the containers that share it, lends its memory, and answers their processes.

A pod that has had to keep borrowed memory on the host for long is published, so that it may move elsewhere.

A process asks what it uses of a GPU by the driver's figures after it has made a context, so that contexts count at true
cost: by a counter in its `usage`, and waits for some milliseconds. The driver lists processes by the PIDs of the host,
so the process cannot find itself there, but the agent can find it. The answer is in `arbiter`, which only the agent
writes. However often containers ask, the driver is asked about one GPU after the other and rests for PAUSE_S in
between.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from lamina.agent.containers.paths import folder_names, pod_uid_of
from lamina.agent.context import NodeContext
from lamina.core.evictions import MAX_DISPLACED, Borrowers, DisplacedBorrower
from lamina.enforcement.arbitration import Arbitration, Capacity, Confirm, Report
from lamina.enforcement.open_container import OpenContainer
from lamina.enforcement.process_memory import SlotProcess, bytes_by_slot, slot_process, slot_processes, word
from lamina.enforcement.reserve import fill_reserve
from lamina.ports.cgroups import is_of_pod
from lamina.ports.host import Host
from lamina.ports.nvml import GpuProcess

PAUSE_S = 0.02
LATE_S = 0.5
"""After this long without an answer of the driver, processes go by their own guess."""
_Listed = Sequence[tuple[str, SlotProcess, int | None]]
"""Processes on a GPU: their cgroups, who they are, and the bytes that they use."""


class ContextFigures:
    """Answers the containers to which an arbitration attends. `answer_requests` never waits: a task asks the driver."""

    def __init__(self, node: NodeContext, host: Host) -> None:
        self._nvml = node.nvml
        self._record = node.record
        self._clock = node.clock
        self._aside = node.aside
        self._host = host
        self._answered: dict[OpenContainer, int] = {}
        """The number of requests that were answered. A container that starts again is another one."""
        self._answering: asyncio.Task[None] | None = None
        self._since = 0.0

    def answer_requests(self, arbitration: Arbitration) -> None:
        """Answer the containers that have asked since they were answered last."""
        containers, now = arbitration.containers, self._clock.monotonic()
        if self._answering is None or self._answering.done():
            self._answering, self._since = None, now
            asking = [each for each in containers if each.figure_requests != self._answered.get(each, 0)]
            if asking:
                self._answering = asyncio.create_task(self._answer_each(asking))
        if now - self._since < LATE_S:
            for container in containers:
                container.is_ready_for_requests(int(now * 1e9))
        self._answered = {each: self._answered[each] for each in containers if each in self._answered}

    def close(self) -> None:
        if self._answering is not None:
            self._answering.cancel()

    async def _answer_each(self, asking: Sequence[OpenContainer]) -> None:
        with self._aside.around("figures of containers", "this node"):
            await self._answer(asking)
        await self._clock.sleep(PAUSE_S)

    async def _answer(self, asking: Sequence[OpenContainer]) -> None:
        """Ask the driver once about each GPU. What slots say was read before: a process that gets the PID of one that
        the driver listed, and that has ended, is in none of them."""
        requests = {each: each.figure_requests for each in asking}
        said = {each: slot_processes(each.slots, each.devices) for each in asking}
        for gpu in {device.uuid for each in asking for device in each.limits.devices}:
            at = self._clock.monotonic()
            listed = await self._listed(gpu)
            for each in asking:
                self._tell(each, gpu, said[each], listed, at)
        self._answered |= requests

    async def _listed(self, gpu: str) -> _Listed:
        """None of them where the driver does not answer."""
        with self._aside.around("processes on a GPU", gpu):
            return list(self._known(await self._nvml.processes(gpu)))
        return ()

    def _known(self, processes: Iterable[GpuProcess]) -> Iterable[tuple[str, SlotProcess, int | None]]:
        for process in processes:
            if (identity := self._host.process_identity(process.pid)) is not None:
                who = slot_process(identity.pid, identity.start)
                yield self._host.process_cgroups(process.pid), who, process.memory_bytes

    def _tell(
        self, container: OpenContainer, gpu: str, said: Mapping[int, SlotProcess], listed: _Listed, at: float
    ) -> None:
        pods = self._record.pods_of(pod_uid_of(Path(container.name).name))
        own = [(who, used) for cgroups, who, used in listed if any(is_of_pod(cgroups, pod) for pod in pods)]
        words = {slot: word(used, at) for slot, used in bytes_by_slot(said, own).items()}
        for device, limit in enumerate(container.limits.devices):
            if limit.uuid == gpu:
                container.tell_figures(device, words)


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
                pause = max(BUSY_S if busy else IDLE_S, REST * took)
                await self._clock.sleep(look := pause * random.random())
                arbitration.look_at_signals()
                await self._clock.sleep(pause - look)
        finally:
            figures.close()
            arbitration.close()
