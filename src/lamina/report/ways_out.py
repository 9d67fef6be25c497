"""What a person can do so that a pending pod is placed, from the explanation why it is not.

Where a smaller request would fit now, the amount is computed by asking every node for it, so it is exact.
"""

from collections.abc import Callable, Iterator

import msgspec

from lamina.core.requests import ContainerRequest, PodRequest
from lamina.placement import Cause, Explanation, NodeState, PodPlacement, fit
from lamina.placement.state.nodes import GpuState
from lamina.report.cluster_view import ClusterView

_TRIED = 4
"""How many smaller amounts are tried, the largest first."""
_WAYS = {
    Cause.UNSCHEDULABLE: "Run `kubectl uncordon NODE` when maintenance is over.",
    Cause.TAINTED: "Let the pod tolerate the taint, or remove it from a node.",
    Cause.NOT_SELECTED: "Change the node selector or node affinity of the pod, or the labels of a node.",
    Cause.NO_GPU: "Add a node with GPUs, and label it so that it gets an agent.",
    Cause.UNHEALTHY: "Repair or replace the GPUs that are not healthy; the map gives the reason for each.",
    Cause.CORDONED: "Run `lamina uncordon gpu NODE GPU` when maintenance is over.",
    Cause.TYPE: "Change the GPU type that the pod asks for, or add a node with such GPUs.",
    Cause.UUID: "Change the GPU UUIDs that the pod asks for.",
    Cause.MODE: "Wait until the GPUs leave their mode, or request them in the way that their node offers them.",
    Cause.NOT_ALLOWED: "Allow the mode in the configuration of a node, or remove it from the pod.",
    Cause.COUNT: "Request fewer GPUs for each container, or add a node with more GPUs.",
    Cause.ONE_GPU: "Request one GPU for each container, or allow another mode in the configuration of a node.",
    Cause.PROFILE: "Request less memory, or add a node with larger GPUs.",
    Cause.SIZE: "Request less, or add a node with larger GPUs.",
    Cause.QUOTA: "Raise the quota of the namespace, or wait until one of its pods ends.",
    Cause.OTHER_MODE: "Wait until the pods on these GPUs end: an idle GPU can change its mode.",
    Cause.HELD: "Wait until a pod with a whole GPU ends, or add a node.",
    Cause.NOT_IDLE: "Run `lamina advise defrag`: it shows which pods to move so that a GPU becomes idle.",
    Cause.SLOTS: "Raise `sharing.slots` in the configuration, or wait until a container ends.",
    Cause.PLACE: "Wait until a MIG instance is free, or add a node.",
    Cause.MEMORY: "Wait until a pod ends, or run `lamina advise defrag` to see whether moving pods makes room.",
    Cause.CORES: "Wait until a pod ends, or run `lamina advise defrag` to see whether moving pods makes room.",
    Cause.TIME: "Give the container a share of compute, or wait until a pod ends.",
    Cause.APART: "Remove the demand for one NUMA node, or request fewer GPUs.",
    Cause.TOGETHER: "Request less for one of the containers, or split the pod.",
    Cause.HOST: "Request less CPU, memory or other resources of the node, or wait until a pod ends.",
}
_ENDED_BY_PODS = (Cause.QUOTA, Cause.MODE)
"""Lasting for kube-scheduler, which can evict no pod for them. They still end when pods do."""
_MEMORY, _CORES = (Cause.MEMORY, Cause.SIZE, Cause.QUOTA), (Cause.CORES, Cause.SIZE, Cause.QUOTA)


def ways_out(cluster: ClusterView, request: PodRequest, explanation: Explanation) -> Iterator[str]:
    """Sentences, the nearest way first. Nothing where the pod fits."""
    if explanation.fitting or not explanation.groups:
        return
    nearest = explanation.groups[0]
    if len(request.containers) == 1:
        yield from _smaller(cluster.nodes, request, nearest.cause)
    yield _WAYS.get(nearest.cause, "Wait until a pod ends, or add a node.")
    if all(group.lasting and group.cause not in _ENDED_BY_PODS for group in explanation.groups):
        yield "No pod that ends makes room for it: nodes, the configuration or the request have to change."


def _smaller(nodes: list[NodeState], request: PodRequest, cause: Cause) -> Iterator[str]:
    """The largest amount with which the pod would fit now."""
    [container] = request.containers
    limits = (None, None) if container.room is None else (container.room.memory, container.room.cores)
    left_mib, left_cores = ([] if limit is None else [limit.left] for limit in limits)
    if cause in _MEMORY and container.memory_mib is not None:
        most = _largest(nodes, request, container.memory_mib, lambda state: state.free_memory, _with_memory, left_mib)
        if most is not None:
            yield f"It would fit now with at most {most[0]} MiB, on node {most[1]}."
    if cause in _CORES and container.cores:
        most = _largest(nodes, request, container.cores, lambda state: state.free_cores, _with_cores, left_cores)
        if most is not None:
            yield f"It would fit now with at most {most[0]} % of the time, on node {most[1]}."


def _with_memory(container: ContainerRequest, amount: int) -> ContainerRequest:
    return msgspec.structs.replace(container, memory_mib=amount)


def _with_cores(container: ContainerRequest, amount: int) -> ContainerRequest:
    return msgspec.structs.replace(container, cores=amount)


def _largest(
    nodes: list[NodeState],
    request: PodRequest,
    asked: int,
    free: Callable[[GpuState], int],
    changed: Callable[[ContainerRequest, int], ContainerRequest],
    left_by_quotas: list[int],
) -> tuple[int, str] | None:
    """The largest amount below what is asked with which the pod fits, and a node where it does."""
    offers = {free(state) for node in nodes for state in node.gpus if state.gpu.healthy and state.gpu.by_grant}
    offers |= {left // request.containers[0].count for left in left_by_quotas}
    for amount in sorted((offer for offer in offers if 0 < offer < asked), reverse=True)[:_TRIED]:
        smaller = msgspec.structs.replace(request, containers=(changed(request.containers[0], amount),))
        for node in nodes:
            if isinstance(fit(smaller, node), PodPlacement):
                return amount, node.name
    return None
