"""Scores of nodes from 0 to HIGHEST_SCORE, from any measure of how well they suit a pod."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lamina.placement import NodeNames

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

HIGHEST_SCORE = 10
"""MaxExtenderPriority of kube-scheduler."""
_MANY = 50
"""Names that are compared one by one."""


class NodeScores(NamedTuple):
    """Scores of some nodes, in their order."""

    nodes: list[str]
    values: Integers

    @classmethod
    def zero(cls, nodes: list[str]) -> "NodeScores":
        return cls(nodes, np.zeros(len(nodes), np.int64))

    @property
    def best(self) -> str:
        """The first of the nodes with the highest score; empty without nodes."""
        return self.nodes[int(self.values.argmax())] if self.nodes else ""

    def by_node(self) -> dict[str, int]:
        return dict(zip(self.nodes, self.values.tolist(), strict=True))


def stretched(values: Floats, fits: Booleans) -> Integers:
    """Scores that span the whole range from the worst to the best node that fits.

    One pod is a small part of a node: in tenths of what is taken, nearly all nodes would have the same score, and no
    policy would have an effect.
    """
    low, high = values.min(where=fits, initial=np.inf), values.max(where=fits, initial=-np.inf)
    if low >= high:
        return np.zeros(len(values), np.int64)
    return np.where(fits, HIGHEST_SCORE * (values - low) / (high - low), 0.0).astype(np.int64)


def with_single_best(scores: Integers, values: Floats, fits: Booleans, nodes: Sequence[str]) -> Integers:
    """The scores with HIGHEST_SCORE for one node only: among equally good ones, the first by name.

    Packing fills nodes one after another in a fixed order; among equal scores kube-scheduler chooses at random, and
    the room that is held for the pod meanwhile would often be on another node.
    """
    if np.count_nonzero(fits) > 1:
        scores = np.minimum(scores, HIGHEST_SCORE - 1)
        best = np.flatnonzero(fits & (values == values.max(where=fits, initial=-np.inf)))
        scores[_first(best, nodes)] = HIGHEST_SCORE
    return scores


def _first(places: Integers, nodes: Sequence[str]) -> int:
    """Which of these places in the list has the first name in alphabetical order."""
    if len(places) > _MANY and isinstance(nodes, NodeNames):
        return int(places[nodes.ranks[places].argmin()])
    first: int = min(places.tolist(), key=nodes.__getitem__)
    return first
