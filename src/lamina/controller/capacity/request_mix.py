"""The kinds of pods that usually come, learned from the cluster's own pods: their requests for GPUs, CPU and memory.

Every pod counts once, when it is first observed. At a start these are all pods that exist, including those that have
ended, so a restart forgets no more than the API server does. Kinds are expressed as requests and not as shares of
certain GPUs, since GPU models come and go.
"""

from collections import Counter
from itertools import islice
from typing import NamedTuple

import msgspec

from lamina.core.host_size import HostSize
from lamina.core.requests import PodRequest
from lamina.ledger.pods import ParsedPod
from lamina.placement import alike
from lamina.placement.packing import RequestCounts

_MAX_OWNERS = 64
"""Owners of a pod that are looked at. A pod of a DaemonSet has one."""


MAX_NODES = 1 << 16
"""Nodes whose pods without GPUs are counted. Pods may name nodes that do not exist, and nodes come and go."""


class PodKind(NamedTuple):
    """What a pod requests. `request` is None where it requests no GPU."""

    request: PodRequest | None
    size: HostSize
    of_daemon_set: bool = False
    """Every node runs one of these anyway."""

    @property
    def gpus(self) -> int:
        return 0 if self.request is None else sum(container.count for container in self.request.containers)


def pod_kind(pod: ParsedPod) -> PodKind:
    """The pod's kind. A pod whose request cannot be read counts as one without GPUs, since it will get none."""
    request = pod.request
    if request is not None:
        request = alike(request)
        if request.selector.uuids or request.selector.not_uuids:
            # The next pod of this kind names other UUIDs.
            selector = msgspec.structs.replace(request.selector, uuids=(), not_uuids=())
            request = msgspec.structs.replace(request, selector=selector)
    owners = islice(pod.metadata.get("ownerReferences") or (), _MAX_OWNERS)
    of_daemon_set = any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners)
    return PodKind(request, pod.host_size, of_daemon_set)


class RequestMix:
    """Counts by kind. Pods without GPUs count by their node, because most nodes may have no GPU."""

    def __init__(self) -> None:
        self.requests: RequestCounts[PodKind] = RequestCounts()
        self.cpu_of_other_pods: Counter[str] = Counter()
        """By node, thousandths of a core that pods without GPUs requested; at the end the node of the last pod."""

    def count(self, pod: PodKind) -> None:
        """A pod has come, bound or not; those without GPUs do not count here."""
        if pod.gpus and self.requests.add(pod._replace(of_daemon_set=False)):
            self.cpu_of_other_pods = Counter(
                {node: cpu // 2 for node, cpu in self.cpu_of_other_pods.items() if cpu > 1}
            )

    def count_on_node(self, node: str, pod: PodKind) -> None:
        """A pod was bound to a node; one without GPUs takes CPU that pods with GPUs then lack."""
        if not pod.gpus and not pod.of_daemon_set:
            self.cpu_of_other_pods[node] = self.cpu_of_other_pods.pop(node, 0) + pod.size.cpu
            if len(self.cpu_of_other_pods) > MAX_NODES:
                del self.cpu_of_other_pods[next(iter(self.cpu_of_other_pods))]
