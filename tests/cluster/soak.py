"""Pods come and go while parts of the cluster are killed, and all is looked at all the time.

One thread does everything in turns: look, make some, delete some, kill a part, start what was killed. What it does is
drawn from a seed; when it happens depends on the machine.
"""

import json
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random

from tests.cluster import seeing, workloads
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.node import Node
from tests.cluster.stage.processes import Processes
from tests.cluster.stage.stage import Stage
from tests.cluster.truth import Settling, disagreements, over_committed

AT_ONCE = 24
"""Workloads that are there at the same time, at most; more than the GPUs hold."""
LIFE_S = (2.0, 25.0)
AWAY_S = (0.0, 4.0)
KILLS_PER_LOOK = 0.35


class Soak:
    """A run over `pods` workloads. Afterwards: `violations` in sentences, `kills` by part, the UIDs of `pods` that were
    seen, and the ids of containers that `ran` with GPUs."""

    def __init__(self, stage: Stage, lamina: Processes, *, pods: int, seed: int) -> None:
        self._stage, self._lamina, self._wanted = stage, lamina, pods
        self._random = Random(seed)
        self._made = 0
        self._ends: dict[int, float] = {}
        """When each workload that is there shall go."""
        self._comes_back: dict[str, tuple[float, Callable[[], None]]] = {}
        self._settling = Settling(seeing.SETTLING_S)
        self.violations: list[str] = []
        self.kills: Counter[str] = Counter()
        self.pods: set[str] = set()
        self.ran: set[str] = set()
        self.looks = 0

    def run(self) -> None:
        """Until all workloads were made and are gone, and whatever was killed is back."""
        while self._made < self._wanted or self._ends:
            self._look()
            self._delete()
            self._make()
            if self._random.random() < KILLS_PER_LOOK and self._made < self._wanted:
                self._kill()
            self._start(time.monotonic())
        self._start(float("inf"))
        self._lamina.wait()

    def _look(self) -> None:
        try:
            seen = seeing.look(self._stage)
        except Unavailable:
            return
        self.looks += 1
        self.pods |= {*seen.pods}
        self.ran |= {container.id for node in seen.nodes.values() for container in node.containers}
        self._note(over_committed(seen))
        self._note(self._settling.stays(disagreements(seen), time.monotonic()))

    def _note(self, sentences: list[str]) -> None:
        self.violations += [said for said in sentences if said not in self.violations]

    def _make(self) -> None:
        count = min(self._random.randint(0, 8), self._wanted - self._made, AT_ONCE - len(self._ends))
        if count <= 0:
            return
        inits = self._stage.binaries.version != (1, 20)
        items = [workloads.made(self._random, self._made + i, inits=inits) for i in range(count)]
        for number in range(self._made, self._made + count):
            self._ends[number] = time.monotonic() + self._random.uniform(*LIFE_S)
        self._made += count
        # While admission is away some or all of them are refused, as they should be.
        with suppress(Unavailable):
            self._stage.kubectl("create", "-f", "-", stdin=json.dumps({**workloads.LIST, "items": items}))

    def _delete(self) -> None:
        now = time.monotonic()
        over = [number for number, end in self._ends.items() if end <= now]
        if not over:
            return
        words = ["delete", "pods,jobs", "-l", f"{workloads.LABEL} in ({','.join(map(str, over))})", "--wait=false"]
        if self._random.random() < 0.2:
            words += ["--force", "--grace-period=0"]
        try:
            self._stage.kubectl(*words)
        except Unavailable:
            return
        for number in over:
            del self._ends[number]

    def _kill(self) -> None:
        """Kill one part that is there, and say when it comes back."""
        node = self._random.choice(self._stage.nodes)
        parts: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            f"agent of {node.name}": (self._lamina.agents[node.name].kill, self._lamina.agents[node.name].start),
            f"kubelet of {node.name}": (lambda: self._end(node), node.kubelet.start),
            f"containerd of {node.name}": (node.containerd.kill, node.start_containerd),
            "control": (self._lamina.control.kill, self._lamina.control.start),
            "scheduler": (self._lamina.scheduler.kill, self._lamina.scheduler.start),
            f"container on {node.name}": (lambda: self._kill_container(node), lambda: None),
        }
        name = self._random.choice(sorted({*parts} - {*self._comes_back}))
        end, start = parts[name]
        end()
        self.kills[name.partition(" ")[0]] += 1
        self._comes_back[name] = time.monotonic() + self._random.uniform(*AWAY_S), start

    def _end(self, node: Node) -> None:
        node.kubelet.stop(self._random.choice((signal.SIGTERM, signal.SIGKILL)))

    def _kill_container(self, node: Node) -> None:
        try:
            running = [line.split()[0] for line in node.ctr("tasks", "ls").splitlines() if "RUNNING" in line]
            if running:
                node.ctr("tasks", "kill", "--signal", "SIGKILL", self._random.choice(running))
        except Unavailable:
            return  # containerd is away, or the container has just ended

    def _start(self, now: float) -> None:
        for name, (when, start) in list(self._comes_back.items()):
            if when <= now:
                start()
                del self._comes_back[name]
