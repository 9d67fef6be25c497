"""What a person can do so that a pod is placed, from why it is not: in the cluster, or on the nodes nearest to it.

One table has what helps against each cause. Where a smaller request would fit now, the amount is tried, so it is exact.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from lamina.core.requests import ContainerRequest, PodRequest
from lamina.placement import Cause, Explanation, HostRefusal, Misfit, Miss, NodeState, PodPlacement, fit, miss_of
from lamina.placement.state.nodes import GpuState
from lamina.ports.kube import Object
from lamina.report.cluster_view import ClusterView

MAX_TRIED = 4
"""How many smaller amounts are tried, the largest first."""
_ENDED = "wait until a pod ends, or add a node"
_MOVED = "wait until a pod ends, or run `lamina advise defrag` to see whether moving pods makes room"
_LARGER = {Cause.COUNT: "add a node with more GPUs", Cause.SIZE: "add a node with larger GPUs"}
_WAYS = {
    Cause.UNSCHEDULABLE: "run `kubectl uncordon NODE` when maintenance is over",
    Cause.TAINTED: "let the pod tolerate the taint, or remove it from a node",
    Cause.NOT_SELECTED: "change the node selector or node affinity of the pod, or the labels of a node",
    Cause.NO_GPU: "add a node with GPUs, and label it so that it gets an agent",
    Cause.UNHEALTHY: "repair or replace the GPUs that are not healthy; `lamina gpus` gives the reason for each",
    Cause.CORDONED: "run `lamina uncordon gpu NODE GPU` when maintenance is over",
    Cause.TYPE: "change the GPU type that the pod asks for, or add a node with such GPUs",
    Cause.UUID: "change the GPU UUIDs that the pod asks for",
    Cause.MODE: "wait until the GPUs leave their mode, or request them in the way that their node offers them",
    Cause.NOT_ALLOWED: "allow the mode in the configuration of a node, or accept another mode",
    Cause.COUNT: f"request fewer GPUs for each container, or {_LARGER[Cause.COUNT]}",
    Cause.ONE_GPU: "request one GPU for each container, or accept another mode",
    Cause.PROFILE: "request no more than the largest MIG profile has, or add a node with larger GPUs",
    Cause.SIZE: f"request less, or {_LARGER[Cause.SIZE]}",
    Cause.QUOTA: "raise the quota of the namespace, or wait until one of its pods ends",
    Cause.OTHER_MODE: "wait until the pods on these GPUs end: an idle GPU can change its mode",
    Cause.HELD: "wait until a pod with a whole GPU ends, or add a node",
    Cause.ISOLATION: "wait until the containers that share the GPU in another way end, or add a node",
    Cause.NOT_IDLE: "run `lamina advise defrag`: it shows which pods to move so that a GPU becomes idle",
    Cause.SLOTS: "wait until a container ends, or raise `sharing.slots` in the configuration",
    Cause.PLACE: "wait until a MIG instance is free, or add a node",
    Cause.MEMORY: _MOVED,
    Cause.CORES: _MOVED,
    Cause.TIME: "give the container a share of compute, or wait until a pod ends",
    Cause.APART: "remove the demand for one NUMA node, or request fewer GPUs",
    Cause.MIXED: "request fewer GPUs, or wait until GPUs of a node are idle",
    Cause.TOGETHER: "request less for one of the containers, or split the pod",
    Cause.HOST: "request less CPU, memory or other resources of the node, or wait until a pod ends",
}
_ENDED_BY_PODS = (Cause.QUOTA, Cause.MODE)
"""Lasting for kube-scheduler, which can evict no pod for them. They still end when pods do."""
_MEMORY, _CORES = (Cause.MEMORY, Cause.SIZE, Cause.QUOTA), (Cause.CORES, Cause.SIZE, Cause.QUOTA)


def remedies(cluster: ClusterView, request: PodRequest, explanation: Explanation) -> Iterator[str]:
    """Sentences, the nearest way first. Nothing where the pod fits."""
    if explanation.fitting or not explanation.groups:
        return
    nearest = explanation.groups[0]
    if len(request.containers) == 1:
        yield from _smaller(cluster.nodes, request, nearest.cause)
    way = _WAYS.get(nearest.cause, _ENDED)
    yield f"{way[0].upper()}{way[1:]}."
    if all(group.lasting and group.cause not in _ENDED_BY_PODS for group in explanation.groups):
        yield "No pod that ends makes room for it: nodes, the configuration or the request have to change."


class WaysOut:
    """Those of the pods of one view. Pods with one request and one explanation, such as replicas, share the search."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._known: dict[tuple[PodRequest, str], tuple[str, ...]] = {}

    def of(self, pod: Object) -> tuple[str, ...]:
        """Sentences, the nearest way first. Nothing for a pod that has a node, and where nodes do not matter yet."""
        cluster = self._cluster
        if pod["spec"].get("nodeName") or cluster.not_placed(pod) or cluster.parse(pod).problem:
            return ()
        request, explanation = cluster.bounded(pod), cluster.explain(pod)
        if explanation is None or explanation.fitting:
            return ()
        if request is None:
            states = {name: cluster.node(name) for name in sorted(cluster.inventories)}
            return tuple(line.strip() for line in nearest_remedies(cluster, pod, None, states))
        key = request, explanation.summary
        if key not in self._known:
            self._known[key] = tuple(remedies(cluster, request, explanation))
        return self._known[key]


def node_remedies(request: PodRequest, misfit: Misfit) -> Iterator[str]:
    """What would be enough on one node, each alone, as far as can be known. A smaller request is suggested only if it
    fits there."""
    needed, available, unit = misfit.numbers
    cause = misfit.cause
    smaller: dict[str, Any] = {}
    if cause in _MEMORY and unit == "MiB":
        smaller = {"memory_mib": available, "memory_percent": None}
    elif cause in _CORES and unit == "%":
        smaller = {"cores": available}
    elif cause is Cause.COUNT:
        smaller = {"count": available}
    if smaller and available > 0 and _fits(request, misfit.container, smaller, misfit.node):
        yield f"request at most {available} {unit}"
    if cause is Cause.MEMORY:
        yield f"wait until {needed - available} MiB more are free on a GPU of the node"
    elif cause is Cause.CORES:
        yield f"wait until {needed - available} % more of the time of a GPU of the node are free"
    else:
        yield _LARGER.get(cause) or _WAYS.get(cause, _ENDED)


def nearest_remedies(
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
        ways = chosen.remedies(request)
        if chosen.number == 1:
            yield from (f"  To change that on {chosen.node}: {way}." for way in ways[0])
        elif all(ways):
            yield f"  To change that on {chosen.node}: {', and '.join(way[0] for way in ways)}."


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

    def remedies(self, request: PodRequest | None) -> list[tuple[str, ...]]:
        """For each obstacle, what would be enough."""
        found = [refusal.changes for refusal in self.of_host]
        if isinstance(self.of_gpus, Misfit) and request is not None:
            found.append(tuple(node_remedies(request, self.of_gpus)))
        elif self.of_gpus is not None:
            found.append(() if self.of_gpus.lasting else (_ENDED,))
        return found


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


def _smaller(nodes: list[NodeState], request: PodRequest, cause: Cause) -> Iterator[str]:
    """The largest amount with which the pod would fit now."""
    [container] = request.containers
    limits = (None, None) if container.room is None else (container.room.memory, container.room.cores)
    left_mib, left_cores = ([] if limit is None else [limit.left] for limit in limits)
    if cause in _MEMORY and container.memory_mib is not None:
        amounts = _amounts(nodes, container.memory_mib, container, lambda state: state.free_memory, left_mib)
        if found := _first_that_fits(nodes, request, "memory_mib", amounts):
            yield f"It would fit now with at most {found[0]} MiB, on node {found[1]}."
    if cause in _CORES and container.cores:
        amounts = _amounts(nodes, container.cores, container, lambda state: state.free_cores, left_cores)
        if found := _first_that_fits(nodes, request, "cores", amounts):
            yield f"It would fit now with at most {found[0]} % of the time, on node {found[1]}."


def _amounts(
    nodes: list[NodeState],
    asked: int,
    container: ContainerRequest,
    free: Callable[[GpuState], int],
    left_by_quotas: list[int],
) -> list[int]:
    """What GPUs or quotas have left below what is asked, the largest first."""
    offers = {free(state) for node in nodes for state in node.gpus if state.gpu.healthy and state.gpu.by_grant}
    offers |= {left // container.count for left in left_by_quotas}
    return sorted((offer for offer in offers if 0 < offer < asked), reverse=True)[:MAX_TRIED]


def _first_that_fits(
    nodes: list[NodeState], request: PodRequest, field: str, amounts: list[int]
) -> tuple[int, str] | None:
    """The first of the amounts with which the pod fits, and a node where it does."""
    for amount in amounts:
        for node in nodes:
            if _fits(request, request.containers[0], {field: amount}, node):
                return amount, node.name
    return None


def _fits(request: PodRequest, container: ContainerRequest, smaller: Mapping[str, Any], node: NodeState) -> bool:
    containers = tuple(replace(each, **smaller) if each == container else each for each in request.containers)
    return isinstance(fit(replace(request, containers=containers), node), PodPlacement)
