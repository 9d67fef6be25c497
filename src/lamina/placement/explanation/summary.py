"""One text about a pending pod: nodes counted by cause, and the nearest miss in numbers."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from lamina.placement.explanation.misfit import Misfit
from lamina.placement.explanation.sentences import Numbers
from lamina.placement.rules.refusal import Cause

COUNTED = {
    Cause.UNSCHEDULABLE: "unschedulable",
    Cause.TAINTED: "with a taint",
    Cause.NOT_SELECTED: "not selected by the pod",
    Cause.NO_GPU: "without a GPU",
    Cause.UNHEALTHY: "without a healthy GPU",
    Cause.CORDONED: "with cordoned GPUs",
    Cause.MODE: "with GPUs in another mode",
    Cause.TYPE: "without a GPU of the type",
    Cause.UUID: "without the GPU by UUID",
    Cause.NOT_ALLOWED: "without the mode",
    Cause.COUNT: "with too few GPUs",
    Cause.ONE_GPU: "that give a container one GPU, by MPS",
    Cause.PROFILE: "without a MIG profile large enough",
    Cause.SIZE: "with too small GPUs",
    Cause.QUOTA: "with GPUs beyond a quota",
    Cause.OTHER_MODE: "with GPUs kept in another mode",
    Cause.HELD: "with GPUs held whole",
    Cause.NOT_IDLE: "without an idle GPU",
    Cause.ISOLATION: "with GPUs of the other isolation",
    Cause.SLOTS: "without a free slot",
    Cause.PLACE: "without a place for a MIG instance",
    Cause.MEMORY: "short of memory",
    Cause.CORES: "short of compute",
    Cause.TIME: "with all time granted",
    Cause.APART: "without enough GPUs on one NUMA node",
    Cause.MIXED: "without enough GPUs in one mode",
    Cause.TOGETHER: "without room for all containers",
    Cause.HOST: "short of CPU or other resources of the node",
}
"""Nodes with the cause, after their number."""


class Miss(NamedTuple):
    """What a misfit says, without its node. Of two the one with the greater `nearness` is nearer to a fit."""

    reason: str
    cause: Cause
    lasting: bool
    nearness: tuple[int, int, float]
    numbers: Numbers | None = None
    """What was needed and the most that was available, where that can be counted."""


def miss_of(misfit: Misfit) -> Miss:
    """Later causes are nearer; of one cause, the one with more GPUs that fit; then the smaller gap."""
    numbers = misfit.numbers
    nearness = (int(misfit.cause), misfit.fitting, numbers.available / max(1, numbers.needed))
    return Miss(misfit.reason, misfit.cause, misfit.lasting, nearness, numbers)


def summary(fitting: Sequence[str], missed: Sequence[tuple[Miss, Sequence[str]]]) -> str:
    """The text about nodes that fit, in the order in which they are to be named, and nodes that do not, by miss."""
    total = len(fitting) + sum(len(nodes) for _, nodes in missed)
    if total == 0:
        return "no node offers GPUs"
    if fitting:
        return f"fits on {len(fitting)} of {total} nodes: {', '.join(fitting[:5])}{' ...' if len(fitting) > 5 else ''}"
    least = max(miss.nearness for miss, _ in missed)
    nearest, reason = min((min(nodes), miss.reason) for miss, nodes in missed if miss.nearness == least)
    if total == 1:
        return f"node {nearest}: {reason}"
    counts: Counter[Cause] = Counter()
    for miss, nodes in missed:
        counts[miss.cause] += len(nodes)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], -item[0]))
    causes = ", ".join(f"{count} {COUNTED[cause]}" for cause, count in ranked)
    return f"0 of {total} nodes fit: {causes}; nearest is {nearest}: {reason}"
