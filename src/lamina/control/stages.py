"""How far a pod has come, in an order that time only climbs.

Watches may repeat, lose or swap what they tell. What is known of a pod therefore only ever rises: a node once given
stays, an end stays an end, and a late word of an earlier stage changes nothing.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple


class Stage(IntEnum):
    UNKNOWN = 0
    PENDING = 1
    """It exists and has no node."""
    BOUND = 2
    FINISHED = 3
    """All its containers have ended for good."""
    GONE = 4


class PodState(NamedTuple):
    """What is known of one pod. `node` is empty until it is bound."""

    stage: Stage = Stage.UNKNOWN
    node: str = ""

    def risen(self, other: "PodState") -> "PodState":
        """Both pieces of knowledge together."""
        return PodState(max(self.stage, other.stage), self.node or other.node)

    @property
    def over(self) -> bool:
        """Whether the pod holds nothing any more, and never will again."""
        return self.stage >= Stage.FINISHED


def pod_state(pod: Mapping[str, Any]) -> PodState:
    """The state that a pod object tells."""
    node = (pod.get("spec") or {}).get("nodeName") or ""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return PodState(Stage.FINISHED, node)
    return PodState(Stage.BOUND if node else Stage.PENDING, node)
