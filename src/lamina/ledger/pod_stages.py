"""The stages of a pod's life, which a pod passes in one direction only.

Watches may repeat, lose or reorder events. What is known of a pod therefore only advances: a pod that has a node keeps
it, a pod that has ended stays ended, and a late event of an earlier stage changes nothing.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from lamina.core.pod_status import is_over


class Stage(IntEnum):
    """How far a pod has come."""

    UNKNOWN = 0
    PENDING = 1
    """The pod exists and has no node."""
    BOUND = 2
    FINISHED = 3
    """All its containers have terminated for good."""
    GONE = 4
    """The pod is deleted."""


class PodState(NamedTuple):
    """What is known of one pod. `node` is empty until the pod is bound."""

    stage: Stage = Stage.UNKNOWN
    node: str = ""

    def merged_with(self, other: "PodState") -> "PodState":
        """What is known from both observations together."""
        return PodState(max(self.stage, other.stage), self.node or other.node)

    @property
    def ended(self) -> bool:
        """Whether the pod holds nothing any more, and never will again."""
        return self.stage >= Stage.FINISHED


def pod_state(pod: Mapping[str, Any]) -> PodState:
    """The state that a Pod object shows."""
    node = (pod.get("spec") or {}).get("nodeName") or ""
    if is_over(pod):
        return PodState(Stage.FINISHED, node)
    return PodState(Stage.BOUND if node else Stage.PENDING, node)
