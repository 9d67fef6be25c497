"""What would have to change so that a pod fits, on the nodes that are nearest to it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lamina.core.requests import PodRequest
from lamina.placement import HostRefusal, Misfit, Miss, NodeState, fit, miss_of, remedies
from lamina.ports.kube import Object
from lamina.report.cluster_view import ClusterView

_ENDED = "wait until pods on the node have ended"


class _Obstacles(NamedTuple):
    """All that keeps a pod from one node: rules of kube-scheduler, and GPUs or native devices, if they do."""

    node: str
    of_host: tuple[HostRefusal, ...]
    of_gpus: Misfit | Miss | None

    @property
    def number(self) -> int:
        return len(self.of_host) + (self.of_gpus is not None)

    @property
    def nearness(self) -> tuple[int, int, float]:
        """Of what is the farthest."""
        found = [refusal.miss for refusal in self.of_host]
        if self.of_gpus is not None:
            found.append(miss_of(self.of_gpus) if isinstance(self.of_gpus, Misfit) else self.of_gpus)
        return min(miss.nearness for miss in found)

    def changes(self, request: PodRequest | None) -> list[tuple[str, ...]]:
        """For each obstacle, what would be enough."""
        found = [refusal.changes for refusal in self.of_host]
        if isinstance(self.of_gpus, Misfit) and request is not None:
            found.append(tuple(remedies(request, self.of_gpus)))
        elif self.of_gpus is not None:
            found.append(() if self.of_gpus.lasting else (_ENDED,))
        return found


def changes(
    cluster: ClusterView, pod: Object, request: PodRequest | None, states: Mapping[str, NodeState]
) -> Iterator[str]:
    """A line for each way out, on the node with the fewest obstacles.

    Where the rules of kube-scheduler are all that is in the way on one node, and GPUs on another, both are named.
    """
    found = list(_obstacles(cluster, pod, request, states))
    nearest = {}
    for each in sorted(found, key=lambda each: each.nearness):
        nearest[each.number, bool(each.of_host)] = each
    single = [nearest[key] for key in ((1, True), (1, False)) if key in nearest]
    several = [nearest[key] for key in sorted(nearest) if key[0] > 1]
    for chosen in single or several[:1]:
        ways = chosen.changes(request)
        if chosen.number == 1:
            yield from (f"  To change that on {chosen.node}: {way}." for way in ways[0])
        elif all(ways):
            yield f"  To change that on {chosen.node}: {', and '.join(way[0] for way in ways)}."


def _obstacles(
    cluster: ClusterView, pod: Object, request: PodRequest | None, states: Mapping[str, NodeState]
) -> Iterator[_Obstacles]:
    devices = cluster.lacking_gpus(pod, request)
    for name, state in states.items():
        if name in devices:
            yield _Obstacles(name, cluster.host_refusals(pod, name), devices[name])
        elif request is not None:
            answer = fit(request, state)
            misfit = answer if isinstance(answer, Misfit) else None
            yield _Obstacles(name, cluster.host_refusals(pod, name), misfit)
