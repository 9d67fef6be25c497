"""A step of the advice, carried out one batch of pods at a time: what is in a batch, and what has become of it. Pure.

The members of a pod group that a step moves are one batch, any other pod is a batch of its own. A batch is done when
its pods are gone and as many new pods of their controllers run, none of them on the GPU that is to become idle.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from lamina.placement.eviction.defrag import DefragStep


class MovedPod(Struct, frozen=True, kw_only=True):
    """A pod of a controller as it is now. `gpus` are UUIDs, none while it holds nothing; `group` is empty for none."""

    uid: str
    namespace: str
    name: str
    owner: str
    gpus: frozenset[str] = frozenset()
    running: bool = False
    group: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Batch(Struct, frozen=True):
    """Pods to evict together. `frees` is the GPU that they are to leave."""

    frees: str
    pods: tuple[MovedPod, ...]


class BatchState(StrEnum):
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


class Outcome(NamedTuple):
    """`reason` says what is awaited or what failed, as a sentence."""

    state: BatchState
    reason: str = ""


def batches(step: DefragStep, holders: Iterable[MovedPod]) -> list[Batch]:
    """The batches of a step, in the order of its moves."""
    by_name = {str(holder): holder for holder in holders}
    groups: dict[str, list[MovedPod]] = {}
    for move in step.moves:
        holder = by_name[move.pod]
        groups.setdefault((holder.group and f"group {holder.group}") or str(holder), []).append(holder)
    return [Batch(step.frees, tuple(pods)) for pods in groups.values()]


def changed(batch: Batch, observed: Sequence[MovedPod]) -> str:
    """Which pod of the batch is not as it was when the plan was made, as a sentence, or nothing."""
    now = {holder.uid: holder for holder in observed}
    for pod in batch.pods:
        if pod.uid not in now:
            return f"pod {pod} has ended since the plan was made"
        if now[pod.uid].gpus != pod.gpus:
            return f"pod {pod} holds other GPUs than when the plan was made"
    return ""


def outcome(
    batch: Batch, observed: Sequence[MovedPod], known: Set[str], *, waited_s: float, patience_s: float
) -> Outcome:
    """What has become of an evicted batch. `known` are the UIDs of all pods that existed before the eviction."""
    uids = {pod.uid for pod in batch.pods}
    owed = Counter(pod.owner for pod in batch.pods)
    new = [holder for holder in observed if holder.owner in owed and holder.uid not in known]
    for holder in new:
        if batch.frees in holder.gpus:
            return Outcome(BatchState.FAILED, f"pod {holder} was placed on the GPU that was to become idle")
    staying = [str(holder) for holder in observed if holder.uid in uids]
    missing = _missing(batch, owed, new)
    if not staying and not missing:
        return Outcome(BatchState.DONE)
    awaited = f"pod {staying[0]} has not ended" if staying else f"no pod runs in place of {missing[0]}"
    if waited_s < patience_s:
        return Outcome(BatchState.WAITING, awaited)
    return Outcome(BatchState.FAILED, f"{awaited} after {waited_s:.0f} s")


def _missing(batch: Batch, owed: Mapping[str, int], new: Sequence[MovedPod]) -> list[str]:
    """The pods of controllers that have too few new pods that run and hold GPUs."""
    running = Counter(holder.owner for holder in new if holder.running and holder.gpus)
    return [str(pod) for pod in batch.pods if running[pod.owner] < owed[pod.owner]]
