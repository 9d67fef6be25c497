"""Why a pod waits, over all nodes: nodes counted by cause, and the nearest miss in numbers."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from lamina.model.requests import PodRequest
from lamina.placement.causes import Cause
from lamina.placement.fit import Placement, fit
from lamina.placement.misfit import Misfit
from lamina.placement.nodes import NodeState

_COUNTED = {
    Cause.NO_GPU: "without a GPU",
    Cause.UNHEALTHY: "without a healthy GPU",
    Cause.TYPE: "without a GPU of the type",
    Cause.UUID: "without the GPU by UUID",
    Cause.COUNT: "with too few GPUs",
    Cause.SIZE: "with too small GPUs",
    Cause.HELD: "with GPUs held whole",
    Cause.NOT_IDLE: "without an idle GPU",
    Cause.SLOTS: "without a free slot",
    Cause.MEMORY: "short of memory",
    Cause.CORES: "short of compute",
    Cause.TIME: "with all time granted",
    Cause.TOGETHER: "without room for all containers",
}


class Group(Struct, frozen=True):
    """Nodes for which the same sentence holds."""

    cause: Cause
    reason: str
    nodes: tuple[str, ...]
    lasting: bool


class Explanation(Struct, frozen=True):
    """Where a pod fits and why not elsewhere. Groups stand nearest miss first; `summary` is one text for an event."""

    fitting: tuple[str, ...]
    groups: tuple[Group, ...]
    summary: str


def explain(request: PodRequest, nodes: Iterable[NodeState]) -> Explanation:
    """Tries every node; the answer says the same as `fit` does for each of them."""
    fitting: list[str] = []
    misfits: list[Misfit] = []
    for node in nodes:
        answer = fit(request, node)
        if isinstance(answer, Placement):
            fitting.append(node.name)
        else:
            misfits.append(answer)
    misfits.sort(key=_nearness, reverse=True)
    groups: dict[str, list[Misfit]] = {}
    for misfit in misfits:
        groups.setdefault(misfit.reason, []).append(misfit)
    return Explanation(
        fitting=tuple(fitting),
        groups=tuple(
            Group(alike[0].cause, reason, tuple(misfit.node.name for misfit in alike), alike[0].lasting)
            for reason, alike in groups.items()
        ),
        summary=_summary(fitting, misfits),
    )


def _nearness(misfit: Misfit) -> tuple[int, int, float]:
    """Later causes are nearer; of one cause, the smaller gap."""
    numbers = misfit.numbers
    return misfit.cause, misfit.fitting, numbers.available / max(1, numbers.needed)


def _summary(fitting: list[str], misfits: list[Misfit]) -> str:
    total = len(fitting) + len(misfits)
    if total == 0:
        return "no node offers GPUs"
    if fitting:
        return f"fits on {len(fitting)} of {total} nodes: {', '.join(fitting[:5])}{' ...' if len(fitting) > 5 else ''}"
    nearest = misfits[0]
    if total == 1:
        return f"node {nearest.node.name}: {nearest.reason}"
    counts = Counter(misfit.cause for misfit in misfits)
    causes = ", ".join(f"{count} {_COUNTED[cause]}" for cause, count in counts.most_common())
    return f"0 of {total} nodes fit: {causes}; nearest is {nearest.node.name}: {nearest.reason}"
