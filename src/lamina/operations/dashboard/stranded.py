"""Which GPUs have something free that is of no use to the pods that the cluster has now, running or pending."""

from collections.abc import Iterable, Iterator

import msgspec

from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.errors import BadInput
from lamina.placement import alike
from lamina.placement.rules.refusal import refusal
from lamina.placement.state.nodes import GpuState, NodeState
from lamina.report.cluster_view import ClusterView

_Kind = tuple[ContainerRequest, GpuSelector]


class StrandedGpus:
    """Says of one GPU after the other whether it is stranded. Equal GPUs are asked once."""

    def __init__(self, kinds: Iterable[_Kind]) -> None:
        self._kinds = list(kinds)
        self._known: dict[GpuState, bool] = {}

    def holds(self, state: GpuState) -> bool:
        """Whether something of the GPU is free and no container of any kind fits. Without kinds, no GPU is."""
        if not self._kinds or not state.gpu.healthy or not state.free_memory or not state.free_cores:
            return False
        plain = msgspec.structs.replace(state, gpu=msgspec.structs.replace(state.gpu, uuid="", index=0, links=()))
        if plain not in self._known:
            self._known[plain] = state.gpu.by_grant and not any(
                refusal(container, selector, plain) is None for container, selector in self._kinds
            )
        return self._known[plain]


def kinds(cluster: ClusterView) -> Iterator[_Kind]:
    """Each kind of container in the pods of the cluster once. Wishes for certain GPUs are left out."""
    seen: set[_Kind] = set()
    requests: set[PodRequest] = set()
    for pod in cluster.pods:
        if cluster.ledger.pod(pod["metadata"]["uid"]).ended:
            continue
        try:
            request = cluster.request(pod)
        except BadInput:
            continue
        if request is None or request in requests:
            continue
        requests.add(request)
        selector = msgspec.structs.replace(request.selector, uuids=(), not_uuids=())
        for container in alike(request).containers:
            kind = msgspec.structs.replace(container, container="", count=1), selector
            if kind not in seen:
                seen.add(kind)
                yield kind


def stranded_gpus(cluster: ClusterView, nodes: Iterable[NodeState]) -> set[str]:
    """Their UUIDs."""
    found = StrandedGpus(kinds(cluster))
    return {state.gpu.uuid for node in nodes for state in node.gpus if found.holds(state)}
