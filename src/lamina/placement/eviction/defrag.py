"""Advice on moving pods so that GPUs become idle, for whole-GPU pods that find none. Pure; nothing is moved.

GPUs that are shared are looked at one after the other, the one that is held least first. If all pods on it would fit
elsewhere on GPUs that stay shared, moving them frees it. Each step is worked out with the one before it done, in an
order in which every move fits at its time. No pod is moved twice.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from lamina.model.gpus import Gpu
from lamina.model.ledger import NOTHING, Taken, taken_by
from lamina.model.policies import BINPACK
from lamina.model.requests import PodRequest
from lamina.placement.search.fit import PodPlacement, fit
from lamina.placement.state.nodes import NodeState


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


def advise(
    nodes: Mapping[str, Sequence[Gpu]], residents: Sequence[Resident], *, most_moves: int = 20
) -> list[DefragStep]:
    """The steps that free the most GPUs with at most `most_moves` moves, as far as going one by one finds them."""
    board = _Board(nodes, residents)
    steps: list[DefragStep] = []
    tried: set[str] = set()
    left = most_moves
    while (found := board.least_held(tried)) is not None:
        node, uuid = found
        tried.add(uuid)
        moves = board.emptied(node, uuid, left)
        if moves:
            left -= len(moves)
            steps.append(DefragStep(node, uuid, tuple(moves)))
    return steps


class _Board:
    """Who is where, with the moves so far done."""

    def __init__(self, nodes: Mapping[str, Sequence[Gpu]], residents: Sequence[Resident]) -> None:
        self._nodes = nodes
        self._residents = {resident.name: resident for resident in residents}

    def least_held(self, tried: set[str]) -> tuple[str, str] | None:
        """The shared GPU, not tried yet, that fewest pods are on, and of these the one with the least memory held."""
        choices = [
            (held.slots, held.memory_mib, node, gpu.uuid)
            for node, gpus in sorted(self._nodes.items())
            for gpu in gpus
            if (held := self._taken(node).get(gpu.uuid, NOTHING)).slots and not held.whole and gpu.uuid not in tried
        ]
        return min(choices)[2:] if choices else None

    def emptied(self, node: str, uuid: str, most: int) -> list[Move]:
        """Move all pods from the GPU, or none: then the board is as before, and there are no moves."""
        before = dict(self._residents)
        here = [each for each in before.values() if each.node == node and uuid in each.taken]
        if len(here) > most or not all(each.movable for each in here):
            return []
        moves = []
        for resident in sorted(here, key=lambda each: (-each.taken[uuid].memory_mib, each.name)):
            moved = self._moved(resident, uuid)
            if moved is None:
                self._residents = before
                return []
            self._residents[resident.name] = moved
            moves.append(_move(resident, moved))
        return moves

    def _moved(self, resident: Resident, uuid: str) -> Resident | None:
        """The pod elsewhere: on GPUs that others share already, preferably of its own node; None where it fits nowhere.

        Its old place stays taken until it has its new one.
        """
        if resident.request is None:
            return None
        request = msgspec.structs.replace(resident.request, gpu_policy=BINPACK)
        for node in sorted(self._nodes, key=lambda name: (name != resident.node, name)):
            if node != resident.node and not resident.elsewhere:
                break
            taken = self._taken(node)
            shared = [gpu for gpu in self._nodes[node] if taken.get(gpu.uuid, NOTHING).slots and gpu.uuid != uuid]
            settled = [gpu for gpu in shared if self._settled(gpu.uuid)]
            for gpus in (settled, shared):
                answer = fit(request, NodeState.of(node, gpus, taken))
                if isinstance(answer, PodPlacement):
                    held = taken_by(answer.containers)
                    return msgspec.structs.replace(resident, node=node, taken=held, movable=False)
        return None

    def _settled(self, uuid: str) -> bool:
        """Whether a pod on the GPU stays, so that the GPU will not be freed."""
        return any(uuid in each.taken and not each.movable for each in self._residents.values())

    def _taken(self, node: str) -> dict[str, Taken]:
        total: dict[str, Taken] = {}
        for resident in self._residents.values():
            if resident.node == node:
                for uuid, held in resident.taken.items():
                    total[uuid] = total.get(uuid, NOTHING).plus(held)
        return total


def _move(before: Resident, after: Resident) -> Move:
    return Move(before.name, before.node, tuple(before.taken), after.node, tuple(after.taken))
