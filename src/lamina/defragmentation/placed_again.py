"""Where the pods that a step of defragmentation moves will be placed again.

The cluster's node policy decides it, as in a simulation. Where it would give the pods other idle GPUs, moving them
frees nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lamina.core.ledger import NOTHING, Taken
from lamina.placement.eviction.defrag import Destination
from lamina.simulation.replay import Replay
from lamina.simulation.workload import SimPod


class Place(NamedTuple):
    """What a pod holds. `node` is its row in the simulation; with `stays` it can be placed on this node alone."""

    pod: SimPod
    node: int
    taken: Mapping[str, Taken]
    stays: bool = False


class _Change(NamedTuple):
    node: int
    pod: SimPod
    taken: Mapping[str, Taken]
    sign: int


_Gpu = tuple[int, str]
"""The row of a node, and the UUID of its GPU."""


class PlacedAgain:
    """Moves pods in a simulation in which they have these places. Called with one GPU after the other."""

    def __init__(self, replay: Replay, places: Iterable[Place]) -> None:
        self._replay = replay
        self._places = {place.pod.name: place for place in places}
        self._changes: list[_Change] = []

    def __call__(self, node: str, uuid: str, pods: Sequence[str]) -> dict[str, Destination] | None:
        """Where the pods of this GPU go, by name; None if not more GPUs would be idle then. None moves in that case.

        As on a cluster, they move one after another while the GPU that is to become idle is cordoned.
        """
        begun, row = len(self._changes), self._replay.rows[node]
        before = {(row, uuid): False}
        nothing, cordon = SimPod(name=""), {uuid: Taken(slots=1, whole=True)}
        self._change(row, nothing, cordon, 1)
        found = [self._move(self._places[name], before) for name in pods]
        self._change(row, nothing, cordon, -1)
        moved = [place for place in found if place is not None]
        gained = sum(self._is_idle(gpu) - was_idle for gpu, was_idle in before.items())
        if len(moved) < len(found) or gained <= 0:
            self.undo(begun)
            return None
        self._places.update({place.pod.name: place for place in moved})
        nodes = self._replay.capacity.nodes
        return {place.pod.name: (nodes[place.node].name, place.taken) for place in moved}

    def undo(self, begun: int = 0) -> None:
        """Take back all changes from this one on."""
        for change in reversed(self._changes[begun:]):
            self._apply(change._replace(sign=-change.sign))
        del self._changes[begun:]

    def _move(self, place: Place, before: dict[_Gpu, bool]) -> Place | None:
        """The new place, None if there is none. `before` gets which GPUs were idle before they were touched."""
        self._touch(place, before)
        self._change(place.node, place.pod, place.taken, -1)
        chosen = self._replay.choose(place.pod, keep=place.stays)
        if chosen is None:
            return None
        new = place._replace(node=chosen[0], taken=chosen[1])
        self._touch(new, before)
        self._change(new.node, new.pod, new.taken, 1)
        return new

    def _touch(self, place: Place, before: dict[_Gpu, bool]) -> None:
        for uuid in place.taken:
            gpu = place.node, uuid
            before.setdefault(gpu, self._is_idle(gpu))

    def _is_idle(self, gpu: _Gpu) -> bool:
        row, uuid = gpu
        [taken] = [each.taken for each in self._replay.capacity.state(row).gpus if each.gpu.uuid == uuid] or [NOTHING]
        return not taken.slots and not taken.whole

    def _change(self, node: int, pod: SimPod, taken: Mapping[str, Taken], sign: int) -> None:
        change = _Change(node, pod, taken, sign)
        self._apply(change)
        self._changes.append(change)

    def _apply(self, change: _Change) -> None:
        self._replay.capacity.take(change.node, change.pod, dict(change.taken), change.sign)
        self._replay.chooser.changed(change.node)
