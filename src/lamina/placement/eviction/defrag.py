"""Advice on moving pods so that GPUs become idle, for whole-GPU pods that find none. Pure; nothing is moved.

GPUs that are shared are looked at one after the other, the one that is held least first. If all pods on it would fit
elsewhere on GPUs that stay shared, moving them frees it. Each step is worked out with the one before it done, in an
order in which every move fits at its time. No pod is moved twice.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from lamina.core.gpus import Gpu
from lamina.core.ledger import NOTHING, Taken, add, taken_by
from lamina.core.policies import BINPACK
from lamina.core.requests import PodRequest
from lamina.placement.search.fit import PodPlacement, fit
from lamina.placement.state.nodes import NodeState

MAX_TRIED = 500
"""GPUs are tried from the one that is held least on, so those that come later are harder to free."""


class Resident(Struct, frozen=True):
    """A pod that holds GPUs of a node. `movable` is False for one that must stay where it is.

    `request` is None where it is unknown; such a pod stays too. `elsewhere` is False for one that may be moved on its
    own node only.
    """

    name: str
    request: PodRequest | None
    node: str
    taken: Mapping[str, Taken]
    movable: bool = True
    elsewhere: bool = True


class Move(Struct, frozen=True):
    """One pod to move. GPUs are UUIDs."""

    pod: str
    from_node: str
    from_gpus: tuple[str, ...]
    to_node: str
    to_gpus: tuple[str, ...]


class DefragStep(Struct, frozen=True):
    """The moves, in their order, after which the GPU `frees` of `node` is idle."""

    node: str
    frees: str
    moves: tuple[Move, ...]


Destination = tuple[str, Mapping[str, Taken]]
"""A node, and what a pod takes there, by UUID of the GPU."""
PlaceAgain = Callable[[str, str, Sequence[str]], Mapping[str, Destination] | None]
"""Of a node and the UUID of its GPU: where the scheduler would place its pods, given and returned by name, while the
GPU is cordoned. None if that would free no GPU."""


def advise(
    nodes: Mapping[str, Sequence[Gpu]],
    residents: Sequence[Resident],
    *,
    most_moves: int = 20,
    place_again: PlaceAgain | None = None,
) -> Iterator[DefragStep]:
    """The steps that free the most GPUs with at most `most_moves` moves, as far as going one by one finds them.

    `place_again` decides where pods go. Without it, they go to GPUs that others share already, preferably of their own
    node. After MAX_TRIED GPUs in a row that cannot be freed, no more are tried.
    """
    board = _Board(nodes, residents)
    left, tried = most_moves, 0
    while left and tried < MAX_TRIED and (found := board.next_least_held()) is not None:
        node, uuid = found
        step = board.emptied(node, uuid, left, place_again or board.shared_place)
        tried += 1
        if step is not None:
            left, tried = left - len(step.moves), 0
            yield step


class _Held(NamedTuple):
    """How much of a GPU is held. The least comes first."""

    slots: int
    memory_mib: int
    node: str
    uuid: str


class _Board:
    """Who is where, with the moves so far done."""

    def __init__(self, nodes: Mapping[str, Sequence[Gpu]], residents: Sequence[Resident]) -> None:
        self._nodes = nodes
        self._residents = {resident.name: resident for resident in residents}
        self._by_node: dict[str, set[str]] = {}
        for resident in residents:
            self._by_node.setdefault(resident.node, set()).add(resident.name)
        self._totals: dict[str, dict[str, Taken]] = {}
        """By node, what is taken, computed again after a change."""
        self._given: set[str] = set()
        """The GPUs that `next_least_held` has returned."""
        self._heap = [each for node in nodes for each in self._held(node)]
        heapq.heapify(self._heap)

    def next_least_held(self) -> tuple[str, str] | None:
        """The shared GPU that fewest pods are on, and of these the one with the least memory held. Each comes once."""
        while self._heap:
            entry = heapq.heappop(self._heap)
            if entry in self._held(entry.node):
                self._given.add(entry.uuid)
                return entry.node, entry.uuid
        return None

    def emptied(self, node: str, uuid: str, most: int, place_again: PlaceAgain) -> DefragStep | None:
        """Move all pods from the GPU, or none: then the board is as before."""
        here = [each for each in self._on(node) if uuid in each.taken]
        if len(here) > most or not all(each.movable and each.request is not None for each in here):
            return None
        before = sorted(here, key=lambda each: (-each.taken[uuid].memory_mib, each.name))
        places = place_again(node, uuid, [each.name for each in before])
        if places is None:
            return None
        after = [_moved_to(each, *places[each.name]) for each in before]
        self._put(after)
        moves = [
            Move(old.name, old.node, tuple(old.taken), new.node, tuple(new.taken))
            for old, new in zip(before, after, strict=True)
        ]
        return DefragStep(node, uuid, tuple(moves))

    def shared_place(self, node: str, uuid: str, pods: Sequence[str]) -> dict[str, Destination] | None:
        """A place for each of these pods of the GPU on GPUs that others share, or None. The board stays as it is."""
        before = [self._residents[name] for name in pods]
        found: dict[str, Destination] = {}
        for resident in before:
            moved = self._moved(resident, uuid)
            if moved is None:
                break
            self._put([moved])
            found[resident.name] = moved.node, moved.taken
        self._put(before)
        return found if len(found) == len(before) else None

    def _held(self, node: str) -> list[_Held]:
        """The shared GPUs of the node that were not given yet."""
        taken = self._taken(node)
        return [
            _Held(held.slots, held.memory_mib, node, gpu.uuid)
            for gpu in self._nodes[node]
            if (held := taken.get(gpu.uuid, NOTHING)).slots and not held.whole and gpu.uuid not in self._given
        ]

    def _put(self, residents: Sequence[Resident]) -> None:
        """The pods are as given here now."""
        for resident in residents:
            before = self._residents[resident.name].node
            self._by_node[before].discard(resident.name)
            self._by_node.setdefault(resident.node, set()).add(resident.name)
            self._residents[resident.name] = resident
            for node in {before, resident.node}:
                self._totals.pop(node, None)
                for entry in self._held(node):
                    heapq.heappush(self._heap, entry)

    def _on(self, node: str) -> list[Resident]:
        return [self._residents[name] for name in self._by_node.get(node, ())]

    def _moved(self, resident: Resident, uuid: str) -> Resident | None:
        """The pod elsewhere: on GPUs that others share already, preferably of its own node; None where it fits nowhere.

        Its old place stays taken until it has its new one.
        """
        assert resident.request is not None, "it is movable"
        request = msgspec.structs.replace(resident.request, gpu_policy=BINPACK)
        for node in sorted(self._nodes, key=lambda name: (name != resident.node, name)):
            if node != resident.node and not resident.elsewhere:
                break
            taken = self._taken(node)
            shared = [gpu for gpu in self._nodes[node] if taken.get(gpu.uuid, NOTHING).slots and gpu.uuid != uuid]
            settled = [gpu for gpu in shared if self._settled(node, gpu.uuid)]
            for gpus in (settled, shared):
                answer = fit(request, NodeState.of(node, gpus, taken))
                if isinstance(answer, PodPlacement):
                    return _moved_to(resident, node, taken_by(answer.containers))
        return None

    def _settled(self, node: str, uuid: str) -> bool:
        """Whether a pod on the GPU stays, so that the GPU will not be freed."""
        return any(uuid in each.taken and not each.movable for each in self._on(node))

    def _taken(self, node: str) -> dict[str, Taken]:
        if node not in self._totals:
            total = self._totals[node] = {}
            for resident in self._on(node):
                add(total, resident.taken)
        return self._totals[node]


def _moved_to(resident: Resident, node: str, taken: Mapping[str, Taken]) -> Resident:
    return msgspec.structs.replace(resident, node=node, taken=taken, movable=False)
