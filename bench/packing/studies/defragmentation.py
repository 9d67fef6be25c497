"""GPUs that become idle by moving pods, while pods come and go.

Pods as HAMi's users ask for them (`bench.shares`) keep 85 % of 104 GPUs busy. Four times in the life of a usual pod,
defragmentation plans with a budget of moves. It cordons the GPU that is to become idle, and each evicted pod goes where
the packing policy places it, as on a cluster. What counts are the GPUs that are idle more than before, per moved pod.

Null control: as many pods, drawn by lot, are evicted and placed again.
"""

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from rich.table import Table

from bench.measures import Report
from bench.packing.studies.study import FIRST_SEED
from bench.packing.traces import Nodes, Pod
from bench.shares.workload import MIXES, nodes, pods
from lamina.core.ledger import Taken
from lamina.defragmentation.placed_again import Place, PlacedAgain
from lamina.placement.eviction.defrag import Resident, advise
from lamina.simulation.replay import Replay
from lamina.simulation.workload import SimPod

BUSY = 0.85
PODS = 1000
"""At most; a shorter list has as many as it has."""
PART = 4
"""One node of so many of `bench.shares`."""
PAUSE = 0.25
"""Between two rounds, in units of the median life of a pod."""
MOVES = 6


class Running(NamedTuple):
    """A pod with a place until its end, as the replay keeps it."""

    end: float
    number: int
    pod: SimPod
    row: int
    taken: dict[str, Taken]


class Outcome(NamedTuple):
    """Moved pods, GPUs that became idle by that, and pods that waited on average."""

    moved: int
    freed: int
    waiting: float


class Churn:
    """One cluster under the packing policy."""

    def __init__(self) -> None:
        self._nodes = nodes(1.0)[::PART]
        self.replay = Replay(self._nodes, (), "packing")
        self.gpus = sum(len(node.gpus) for node in self._nodes)

    @property
    def idle(self) -> int:
        capacity = self.replay.capacity
        return sum(
            not gpu.taken.slots and not gpu.taken.whole
            for row in range(len(self._nodes))
            for gpu in capacity.state(row).gpus
        )

    def running(self) -> list[Running]:
        return [Running(*each) for each in self.replay.ends]

    def residents(self) -> list[Resident]:
        nodes = self._nodes
        return [Resident(each.pod.name, each.pod.request, nodes[each.row].name, each.taken) for each in self.running()]

    def move(self, name: str) -> None:
        """The pod is evicted, and placed again if it fits."""
        [found] = [each for each in self.running() if each.pod.name == name]
        self.replay.ends.remove(found)
        heapq.heapify(self.replay.ends)
        self._change(found.row, found.pod, found.taken, -1)
        if not self.replay.place(found.pod, keep=False, departs=True):
            self.replay.waiting.append(found.pod)

    def placed_again(self) -> PlacedAgain:
        """The policy, for trial."""
        return PlacedAgain(self.replay, [Place(each.pod, each.row, each.taken) for each in self.running()])

    def cordon(self, node: str, uuid: str, *, cordoned: bool) -> None:
        whole = {uuid: Taken(slots=1, whole=True)}
        self._change(self.replay.rows[node], SimPod(name=""), whole, 1 if cordoned else -1)

    def _change(self, row: int, pod: SimPod, taken: dict[str, Taken], sign: int) -> None:
        self.replay.capacity.take(row, pod, taken, sign)
        self.replay.chooser.changed(row)


Round = Callable[[Churn, np.random.Generator], int]
"""Moves pods and returns how many."""


def planned(churn: Churn, random: np.random.Generator) -> int:
    """As the controller does."""
    there = {node.name: node.gpus for node in churn.replay.capacity.nodes}
    trial, moved = churn.placed_again(), 0
    steps = list(advise(there, churn.residents(), most_moves=MOVES, place_again=trial))
    trial.undo()
    for step in steps:
        churn.cordon(step.node, step.frees, cordoned=True)
        for move in step.moves:
            churn.move(move.pod)
        churn.cordon(step.node, step.frees, cordoned=False)
        moved += len(step.moves)
    return moved


def by_lot(churn: Churn, random: np.random.Generator) -> int:
    """Pods that hold a part of a GPU."""
    shared = [each.pod.name for each in churn.running() if not any(taken.whole for taken in each.taken.values())]
    drawn = random.permutation(len(shared))[:MOVES].tolist()
    for place in drawn:
        churn.move(shared[place])
    return len(drawn)


def unmoved(churn: Churn, random: np.random.Generator) -> int:
    """No defragmentation."""
    return 0


def churned(round_of: Round, seed: int, count: int) -> Outcome:
    """Pods come and go; after the first third, pods are moved."""
    churn, random = Churn(), np.random.default_rng(seed)
    coming = pods(seed, count, MIXES["mixed"], BUSY * churn.gpus)
    begins, due = coming[len(coming) // 3].created, 0.0
    moved = freed = 0
    waiting: list[int] = []
    for pod in coming:
        churn.replay.leave(pod.created)
        if pod.created >= max(begins, due):
            due = pod.created + PAUSE
            before = churn.idle
            moved += round_of(churn, random)
            freed += churn.idle - before
        if not churn.replay.place(pod, keep=False, departs=True):
            churn.replay.waiting.append(pod)
        if pod.created >= begins:
            waiting.append(len(churn.replay.waiting))
    return Outcome(moved, freed, float(np.mean(waiting)))


def run(report: Report, cluster: Nodes, requested: Sequence[Pod], seeds: int) -> Table:
    """Defragmentation, pods moved by lot, and none."""
    table = Table(title="pods moved while pods come and go", box=None, pad_edge=False)
    for heading in ("pods", "moved", "GPUs freed", "freed per moved pod", "pods that wait"):
        table.add_column(heading, justify="left" if heading == "pods" else "right")
    rates: dict[str, float] = {}
    waits: dict[str, float] = {}
    for name, round_of in {"as planned": planned, "by lot": by_lot, "not moved": unmoved}.items():
        outcomes = [churned(round_of, FIRST_SEED + number, min(PODS, len(requested))) for number in range(seeds)]
        moved, freed = sum(each.moved for each in outcomes), sum(each.freed for each in outcomes)
        rates[name], waits[name] = freed / max(1, moved), float(np.mean([each.waiting for each in outcomes]))
        table.add_row(name, str(moved), str(freed), f"{rates[name]:.2f}", f"{waits[name]:.1f}")
    report.add("freed-per-moved-pod", "GPUs", ours=rates["as planned"])
    report.control("freed-per-moved-pod", "GPUs", ours=rates["by lot"])
    report.add("waiting-with-defragmentation", "pods", ours=waits["as planned"], native=waits["not moved"])
    return table
