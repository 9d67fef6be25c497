"""Which pods of a group count for it, and how: the one answer for placing, explaining and trying groups."""

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from lamina.ledger.pod_stages import Stage, pod_state
from lamina.ledger.pods import ParsedPod


class Membership(Enum):
    """How a pod counts for its group."""

    SATISFIED = auto()
    """It needs no place with the others: it has succeeded, or requests no GPU and kube-scheduler places it alone."""
    BOUND = auto()
    WAITING = auto()
    ABSENT = auto()
    """As if it did not exist: it has failed, is being deleted, is held by a gate, or Lamina does not place it."""


def membership(pod: ParsedPod) -> Membership:
    """How the pod counts for its group now. A pod that comes in the place of an absent one counts by itself."""
    stage = pod_state(pod.obj).stage
    if stage is Stage.FINISHED:
        succeeded = (pod.obj.get("status") or {}).get("phase") == "Succeeded"
        return Membership.SATISFIED if succeeded else Membership.ABSENT
    if absence(pod):
        return Membership.ABSENT
    if pod.request is None:
        return Membership.SATISFIED
    return Membership.BOUND if stage is Stage.BOUND else Membership.WAITING


def absence(pod: ParsedPod) -> str:
    """Why a pod that has not ended does not count for its group, in words that follow its name; else empty."""
    if pod.metadata.get("deletionTimestamp"):
        return "is being deleted"
    if pod_state(pod.obj).stage is Stage.BOUND:
        return ""
    if pod.problem:
        return "cannot be placed"
    if pod.gates:
        return pod.gates
    return pod.not_placed


class Members(NamedTuple):
    """The pods of a group by how they count. `absent` says why those do not that have not ended, by pod."""

    satisfied: int
    bound: tuple[ParsedPod, ...]
    waiting: tuple[ParsedPod, ...]
    absent: tuple[str, ...]

    @classmethod
    def of(cls, pods: Iterable[ParsedPod]) -> "Members":
        counted: dict[Membership, list[ParsedPod]] = {each: [] for each in Membership}
        for pod in pods:
            counted[membership(pod)].append(pod)
        absent = (f"{pod.name} {why}" for pod in counted[Membership.ABSENT] if (why := absence(pod)))
        return cls(
            len(counted[Membership.SATISFIED]),
            tuple(counted[Membership.BOUND]),
            tuple(counted[Membership.WAITING]),
            tuple(sorted(absent)),
        )

    def needed(self, minimum: int) -> int:
        """How many members must hold GPUs together, of a group that needs so many pods in total."""
        return max(0, minimum - self.satisfied)
