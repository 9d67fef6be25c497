"""The pods that usually come, as the cluster's own pods tell it: what each asked of GPUs and of its host.

Every pod counts once, when it is first heard of. At a start these are all pods that exist, those that have ended
included, so a restart forgets no more than the API server does. What is counted is in the terms of the request, since
cards come and go.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from lamina.dialects import parse
from lamina.dialects.config import Config
from lamina.errors import BadInput
from lamina.model.host_size import HostSize, asked_by
from lamina.model.requests import PodRequest
from lamina.placement import alike
from lamina.placement.packing import Seen


class Arrival(NamedTuple):
    """What one pod asks. `request` is None where it asks no GPU."""

    request: PodRequest | None
    size: HostSize
    everywhere: bool = False
    """It belongs to a DaemonSet: its node has one anyway."""

    @property
    def gpus(self) -> int:
        return 0 if self.request is None else sum(each.count for each in self.request.containers)


def arrival_of(pod: Mapping[str, Any], config: Config) -> Arrival:
    """What the pod asks; a pod that nobody can read asks no GPU, since it will get none."""
    try:
        request = parse(pod, config)
    except BadInput:
        request = None
    if request is not None:
        request = alike(request)
        if request.wishes.uuids or request.wishes.not_uuids:
            # The next pod of its kind asks for other GPUs by their UUIDs.
            wishes = msgspec.structs.replace(request.wishes, uuids=(), not_uuids=())
            request = msgspec.structs.replace(request, wishes=wishes)
    owners = pod["metadata"].get("ownerReferences") or ()
    everywhere = any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners)
    return Arrival(request, asked_by(pod), everywhere)


class Arrivals:
    """Counts by kind. Pods without GPUs count by the node that they came to, as most nodes may have no GPU."""

    def __init__(self) -> None:
        self.seen: Seen[Arrival] = Seen()
        self.cpu_beside: Counter[str] = Counter()
        """By node, thousandths of a core that pods without GPUs asked there."""

    def came(self, pod: Arrival) -> None:
        """A pod with GPUs has come, placed or not."""
        if pod.gpus and self.seen.add(pod._replace(everywhere=False)):
            self.cpu_beside = Counter({node: cpu // 2 for node, cpu in self.cpu_beside.items() if cpu > 1})

    def came_to(self, node: str, pod: Arrival) -> None:
        """A pod has come to a node; those without GPUs take CPU that others then lack."""
        if not pod.gpus and not pod.everywhere:
            self.cpu_beside[node] += pod.size.cpu
