"""Why a pod waits, over all nodes: nodes in groups about which the same sentence holds, and one text for all."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from lamina.core.requests import PodRequest
from lamina.placement.explanation.sentences import Numbers
from lamina.placement.explanation.summary import Miss, miss_of, summary
from lamina.placement.rules.refusal import Cause
from lamina.placement.search.fit import PodPlacement, fit
from lamina.placement.state.nodes import NodeState

NOTHING_COUNTED: Mapping[str, Miss | None] = {}


class NodeGroup(Struct, frozen=True):
    """Nodes for which the same sentence holds."""

    cause: Cause
    reason: str
    nodes: tuple[str, ...]
    lasting: bool
    numbers: Numbers | None = None
    """Those of the node that misses by the least."""


class Explanation(Struct, frozen=True):
    """Where a pod fits and why not elsewhere. Groups stand nearest miss first; `summary` is one text for an event."""

    fitting: tuple[str, ...]
    groups: tuple[NodeGroup, ...]
    summary: str


def explain(
    request: PodRequest, nodes: Iterable[NodeState], counted: Mapping[str, Miss | None] = NOTHING_COUNTED
) -> Explanation:
    """Tries every node; the answer says the same as `fit` does for each of them.

    `counted` has the answers of nodes that allocate, without grants, what the pod counts: None where there is enough.
    """
    fitting: list[str] = []
    missed: dict[Miss, list[str]] = {}
    for node in nodes:
        if node.name in counted:
            lack = counted[node.name]
            if lack is None:
                fitting.append(node.name)
            else:
                missed.setdefault(lack, []).append(node.name)
            continue
        answer = fit(request, node)
        if isinstance(answer, PodPlacement):
            fitting.append(node.name)
        else:
            missed.setdefault(miss_of(answer), []).append(node.name)
    return _explanation(fitting, missed)


def explain_counted(counted: Mapping[str, Miss | None]) -> Explanation:
    """The answer about a pod that requests nothing by grants, from those of all nodes that offer what it counts."""
    missed: dict[Miss, list[str]] = {}
    for node, lack in sorted(counted.items()):
        if lack is not None:
            missed.setdefault(lack, []).append(node)
    return _explanation([node for node in sorted(counted) if counted[node] is None], missed)


def _explanation(fitting: Sequence[str], missed: Mapping[Miss, list[str]]) -> Explanation:
    ranked = sorted(missed.items(), key=lambda item: item[0].nearness, reverse=True)
    groups: dict[str, list[tuple[Miss, list[str]]]] = {}
    for miss, names in ranked:
        groups.setdefault(miss.reason, []).append((miss, names))
    return Explanation(
        fitting=tuple(fitting),
        groups=tuple(
            NodeGroup(
                alike[0][0].cause,
                reason,
                tuple(name for _, names in alike for name in names),
                alike[0][0].lasting,
                alike[0][0].numbers,
            )
            for reason, alike in groups.items()
        ),
        summary=summary(sorted(fitting), ranked),
    )
