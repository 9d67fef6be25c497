"""The nodes that may take members of one kind, in the order in which their policy prefers them at each moment.

Nodes only fill up during a search, so a node on which a member does not fit is not tried again for equal members.
"""

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from lamina.placement.packing import Ask, PackingTrial


class Candidates(Protocol):
    """Call `drop` for each node on which a member does not fit."""

    def best(self) -> str | None:
        """The node to try next."""

    def drop(self, node: str) -> None:
        """Do not try this node again; it was the last answer of `best`."""

    def without(self, node: str) -> "Candidates":
        """A copy that leaves out one node."""


class _Scored(NamedTuple):
    """The lowest is tried first."""

    order: float
    """The negated score."""
    place: int
    """Among nodes of equal score, the one that came first."""
    node: str
    members: int
    """How many members were planned there when the score was computed."""


class ScoredNodes:
    """By score. `members` says how many members are planned on a node, and `order` its negated score with them."""

    def __init__(
        self, nodes: Sequence[str], members: Callable[[str], int], order: Callable[[str], float | None]
    ) -> None:
        self._members = members
        self._order = order
        self._heap: list[_Scored] = []
        for place, node in enumerate(nodes):
            if (value := order(node)) is not None:
                self._heap.append(_Scored(value, place, node, members(node)))
        heapq.heapify(self._heap)

    def best(self) -> str | None:
        while self._heap:
            first = self._heap[0]
            members = self._members(first.node)
            if members == first.members:
                return first.node
            value = self._order(first.node)  # its score has changed since
            if value is None:
                heapq.heappop(self._heap)
            else:
                heapq.heapreplace(self._heap, _Scored(value, first.place, first.node, members))
        return None

    def drop(self, node: str) -> None:
        heapq.heappop(self._heap)

    def without(self, node: str) -> "ScoredNodes":
        copy = ScoredNodes((), self._members, self._order)
        copy._heap = [each for each in self._heap if each.node != node]
        heapq.heapify(copy._heap)
        return copy


class RatedNodes:
    """By the packing policy, among equal nodes the first by name. A node that is full according to the arrays comes
    last: the sharing rules decide."""

    def __init__(self, nodes: Sequence[str], trial: PackingTrial, ask: Ask) -> None:
        self._trial = trial
        self._ask = ask
        self._names = sorted(node for node in nodes if node in trial.rows)
        self._places = {trial.rows[name]: place for place, name in enumerate(self._names)}
        self._left = np.ones(len(self._names), np.bool_)
        self._values = trial.levels(ask)[list(self._places)]
        """-inf for nodes that were dropped."""
        self._read = len(trial.changed)
        """How many changes the values follow."""

    def best(self) -> str | None:
        if not self._names:
            return None
        self._follow()
        place = int(self._values.argmax())
        if self._values[place] == -np.inf:
            left = np.flatnonzero(self._left)
            return self._names[int(left[0])] if left.size else None
        return self._names[place]

    def drop(self, node: str) -> None:
        place = self._places[self._trial.rows[node]]
        self._left[place], self._values[place] = False, -np.inf

    def without(self, node: str) -> "RatedNodes":
        return RatedNodes(
            [name for place, name in enumerate(self._names) if name != node and self._left[place]],
            self._trial,
            self._ask,
        )

    def _follow(self) -> None:
        changed = self._trial.changed
        if self._read == len(changed):
            return
        levels = self._trial.levels(self._ask)
        for row in changed[self._read :]:
            place = self._places.get(row)
            if place is not None and self._left[place]:
                self._values[place] = levels[row]
        self._read = len(changed)
