"""Why pods wait, as fields for programs: the cause, what each node lacks, and what a person can do.

They are made of what the lines for people are made of, so both say the same.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from lamina.placement import Explanation
from lamina.ports.kube import Object
from lamina.report.cluster_view import ClusterView
from lamina.report.reasons import Obstacle, obstacle_and_lines
from lamina.report.remedies import WaysOut

MEANINGS: Mapping[Obstacle, str] = {
    Obstacle.CONTAINERS: "the pod has a node; its containers wait there or have failed",
    Obstacle.HELD_BACK: "a scheduling gate, a check that has not happened yet, or a scheduler that is not Lamina's",
    Obstacle.REFUSED: "what it requests cannot be placed as it is written",
    Obstacle.QUOTA: "a quota of its namespace",
    Obstacle.CLAIMS: "one of its ResourceClaims is missing, not valid or beyond a quota",
    Obstacle.GROUP: "the rest of its pod group has no place",
    Obstacle.NODES: "no node has room; `nodes` has the reason of each",
    Obstacle.SCHEDULER: "nothing that Lamina knows; kube-scheduler has not placed it yet, or has reasons of its own",
}
"""What keeps a pod from running, as the reference describes it."""

_OF_NODES = (Obstacle.QUOTA, Obstacle.GROUP, Obstacle.NODES)


class NodesMiss(Struct, frozen=True, kw_only=True, rename="camel"):
    """Nodes that lack the same. `needed` and `free` are in `unit`, and None where the cause is not an amount."""

    nodes: tuple[str, ...]
    cause: str
    needed: int | None = None
    free: int | None = None
    unit: str = ""
    lasting: bool
    """Whether the pod would not fit even if all other pods left these nodes."""
    reason: str


class PodAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """What keeps one pod from running. `cause` is empty where nothing does."""

    pod: str
    cause: str
    nearest: NodesMiss | None
    """The first of `nodes`, with the one node that misses by the least."""
    nodes: tuple[NodesMiss, ...]
    """All that do not fit, the nearest first."""
    ways_out: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def help_lines(self) -> Iterator[str]:
        """The ways out, for people."""
        if self.ways_out:
            yield "What would help:"
            yield from (f"  {way}" for way in self.ways_out)


def pod_answer(cluster: ClusterView, pod: Object, ways_out: WaysOut) -> PodAnswer:
    """The answer about a pod of the cluster."""
    obstacle, lines = obstacle_and_lines(cluster, pod)
    explanation = cluster.explain(pod) if obstacle in _OF_NODES else None
    nodes = () if explanation is None else tuple(_misses(explanation))
    return PodAnswer(
        pod=pod["metadata"]["name"],
        cause=obstacle.value,
        nearest=replace(nodes[0], nodes=nodes[0].nodes[:1]) if nodes else None,
        nodes=nodes,
        ways_out=ways_out.of(pod) if obstacle in _OF_NODES else (),
        lines=tuple(lines),
    )


def _misses(explanation: Explanation) -> Iterator[NodesMiss]:
    for group in explanation.groups:
        needed, free, unit = group.numbers or (None, None, "")
        yield NodesMiss(
            nodes=group.nodes,
            cause=group.cause.word,
            needed=needed,
            free=free,
            unit=unit,
            lasting=group.lasting,
            reason=group.reason,
        )
