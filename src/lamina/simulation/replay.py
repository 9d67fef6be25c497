"""One replay: pods come, in the order of the list, and go; each gets its place by one policy."""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from lamina.core.ledger import Taken, taken_by
from lamina.core.requests import PodRequest
from lamina.errors import BadInput
from lamina.placement import FITS, NO_NODE, PodPlacement, fit, summary
from lamina.placement.packing import bits
from lamina.simulation.capacity import ClusterCapacity
from lamina.simulation.policies import POLICIES, Chooser
from lamina.simulation.workload import SimNode, SimPod

_POINTS = 60


class Point(Struct, frozen=True):
    """One moment. `asked` and `allocated` are parts of all GPUs, `stranded` is a part of what is free of them."""

    pods: int
    asked: float
    allocated: float
    stranded: float
    waiting: int


class Result(Struct, frozen=True):
    """One policy. `reasons` are why pods wait at the end, with how many each concerns, most first."""

    policy: str
    points: tuple[Point, ...]
    placed: int
    waiting: tuple[str, ...]
    reasons: tuple[tuple[str, int], ...]

    @property
    def end(self) -> Point:
        return self.points[-1]


def replay(
    nodes: Sequence[SimNode],
    pods: Sequence[SimPod],
    policy: str,
    *,
    departures: bool = False,
    keep: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> Result:
    """Place the pods on the empty nodes, one after the other.

    With `departures` a pod leaves at its end, and those that wait are tried again then; with `keep` pods that have a
    node in the dump stay on it. `progress` is called with the number of pods so far.
    Raises BadInput for an unknown policy.
    """
    check_policy(policy)
    return Replay(nodes, pods, policy).run(departures=departures, keep=keep, progress=progress)


def check_policy(policy: str) -> None:
    """Raises BadInput for an unknown policy."""
    if policy not in POLICIES:
        raise BadInput(f"there is no policy {policy!r}; known are {', '.join(POLICIES)}")


class Replay:
    """The cluster under one policy. `ends` are the pods that have a place until their end, `waiting` those without.

    `gpu_policy` is the policy among the GPUs of a node, where it is another one.
    """

    def __init__(self, nodes: Sequence[SimNode], pods: Sequence[SimPod], policy: str, gpu_policy: str = "") -> None:
        self.capacity = ClusterCapacity(nodes)
        self.chooser: Chooser = POLICIES[policy](self.capacity)
        self.policy, self.gpu_policy, self.pods = policy, gpu_policy or policy, pods
        self.rows = {node.name: row for row, node in enumerate(nodes)}
        self.waiting: list[SimPod] = []
        self.ends: list[tuple[float, int, SimPod, int, dict[str, Taken]]] = []
        self.placed = 0
        memories = sorted(gpu.capacity_mib for node in nodes for gpu in node.gpus)
        self.usual_mib = memories[len(memories) // 2] if memories else 1

    def run(self, *, departures: bool, keep: bool, progress: Callable[[int], None]) -> Result:
        asked, points = 0.0, []
        every = max(1, len(self.pods) // _POINTS)
        for number, pod in enumerate(self.pods, start=1):
            if departures:
                self.leave(pod.created)
            asked += _asked(pod.request, self.usual_mib)
            if not self.place(pod, keep=keep, departs=departures):
                self.waiting.append(pod)
            if number % every == 0 or number == len(self.pods):
                points.append(self._point(number, asked))
                progress(number)
        names = tuple(pod.name for pod in self.waiting)
        return Result(self.policy, tuple(points), self.placed, names, tuple(self._reasons()))

    def _point(self, number: int, asked: float) -> Point:
        capacity = self.capacity
        parts = asked / max(1, capacity.gpus), capacity.allocated, capacity.stranded(self.pods)
        return Point(number, *parts, len(self.waiting))

    def leave(self, now: float) -> None:
        """Let pods go whose end has come, and try those that wait, the oldest first."""
        gone = False
        while self.ends and self.ends[0][0] <= now:
            _, _, pod, row, taken = heapq.heappop(self.ends)
            self.capacity.take(row, pod, taken, -1)
            self.chooser.changed(row)
            gone = True
        if gone:
            still = [pod for pod in self.waiting if pod.deleted is None or pod.deleted > now]
            self.waiting = [pod for pod in still if not self.place(pod, keep=False, departs=True)]

    def place(self, pod: SimPod, *, keep: bool, departs: bool) -> bool:
        """Whether the pod has a place now; with `keep` on its own node alone, with `departs` until its end."""
        found = self.choose(pod, keep=keep)
        if found is None:
            return False
        self.occupy(pod, *found, departs=departs)
        return True

    def occupy(self, pod: SimPod, row: int, taken: dict[str, Taken], *, departs: bool) -> None:
        """The pod gets the place that `choose` found."""
        self.capacity.take(row, pod, taken)
        self.chooser.changed(row)
        self.placed += 1
        if departs and pod.deleted is not None:
            heapq.heappush(self.ends, (pod.deleted, self.placed, pod, row, taken))

    def choose(self, pod: SimPod, *, keep: bool = False) -> tuple[int, dict[str, Taken]] | None:
        """The row of the node where the pod would go now, and what it would take there; with `keep` its own node."""
        able = self.capacity.fits(pod)
        levels, gpus = self.chooser.worth(pod)
        if keep and pod.node in self.rows:
            row, gpus = self.rows[pod.node], None
            if not able[row]:
                return None
        else:
            levels = np.where(able, levels, -np.inf)
            row = int(levels.argmax())
            if levels[row] == -np.inf:
                return None
        taken = self._shares(pod, row, None if gpus is None else int(gpus[row]))
        return None if taken is None else (row, taken)

    def _shares(self, pod: SimPod, row: int, gpus: int | None) -> dict[str, Taken] | None:
        """What the pod takes on the node: on these GPUs, or on those that placement likes best under the policy."""
        if pod.request is None:
            return {}
        state = self.capacity.state(row)
        request = msgspec.structs.replace(pod.request, node_policy=self.policy, gpu_policy=self.gpu_policy)
        answer = None
        if gpus:
            named = tuple(state.gpus[place].gpu.uuid for place in bits(gpus))
            selector = msgspec.structs.replace(request.selector, uuids=named)
            answer = fit(msgspec.structs.replace(request, selector=selector), state)
        if not isinstance(answer, PodPlacement):  # one of these GPUs is cordoned
            answer = fit(request, state)
        return taken_by(answer.containers) if isinstance(answer, PodPlacement) else None

    def _reasons(self) -> list[tuple[str, int]]:
        counts: Counter[str] = Counter()
        known: dict[tuple[PodRequest | None, int, int], str] = {}
        for pod in self.waiting:
            kind = (pod.request, pod.cpu, pod.memory_mib)
            if kind not in known:
                known[kind] = self._reason(pod)
            counts[known[kind]] += 1
        return counts.most_common()

    def _reason(self, pod: SimPod) -> str:
        capacity, names = self.capacity, [node.name for node in self.capacity.nodes]
        if pod.request is None:
            return "no node has the CPU and memory"
        survey = capacity.survey(pod.request)
        verdicts = survey.verdicts_on(np.arange(len(names))).tolist()
        if fitting := [name for name, verdict in zip(names, verdicts, strict=True) if verdict == FITS]:
            return f"{len(fitting)} of {len(names)} nodes have the GPUs, but none of them has enough CPU and memory"
        by_miss: dict[int, list[str]] = {}
        for name, verdict in zip(names, verdicts, strict=True):
            if verdict != NO_NODE:
                by_miss.setdefault(verdict, []).append(name)
        return summary([], [(survey.misses[verdict], nodes) for verdict, nodes in by_miss.items()])


def _asked(request: PodRequest | None, usual_mib: int) -> float:
    """GPUs that the request comes to: of each the larger of its parts of time and memory, an amount as a part of a GPU
    with `usual_mib`."""
    total = 0.0
    for each in request.containers if request is not None else ():
        total += each.count * max(min(1.0, each.memory_on(usual_mib) / max(1, usual_mib)), each.cores / 100)
    return total
