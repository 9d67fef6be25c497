"""Pods that run with GPUs although no grant says with which: the grant was deleted while no replica remembered it.

Annotations on the pod are hints for people, and its containers cannot be asked. Only the pod's own request is certain.
So what its containers with tickets request counts on each GPU of its node until the pod ends: possibly too much, never
too little.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from lamina.core.gpus import Gpu, Inventory, Mode
from lamina.core.grants import MAX_CONTAINERS, ContainerGrant, Share
from lamina.core.ledger import Taken, taken_by
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.ledger.pod_stages import Stage, pod_state
from lamina.ledger.pods import ParsedPod

_UNREADABLE = PodRequest(
    dialect="",
    containers=(ContainerRequest(container="", count=1, memory_percent=100, cores=100, exclusive=True),),
)
"""Stands for a request that cannot be read: a container with a ticket may hold whole GPUs."""


class RunningRequest(NamedTuple):
    """What those containers of a bound pod requested that have been started."""

    namespace: str
    pod: str
    request: PodRequest


def running_request(pod: ParsedPod) -> RunningRequest | None:
    """What the started containers of the pod requested; None where none of them can hold a GPU.

    A container that was never started holds nothing, and cannot start without a grant. One without a ticket has started
    without a GPU: kubelet ignores resources that its node does not have, such as the amounts of a share.
    """
    if pod_state(pod.obj).stage is not Stage.BOUND:
        return None
    started = pod.ticket_holders.intersection(started_containers(pod.obj.get("status") or {}))
    if not started:
        return None
    if pod.problem:
        return RunningRequest(pod.namespace, pod.name, _UNREADABLE)
    if pod.request is None:
        return None
    containers = tuple(container for container in pod.request.containers if container.container in started)
    if not containers:
        return None
    request = msgspec.structs.replace(pod.request, containers=containers)
    return RunningRequest(pod.namespace, pod.name, request)


def largest_holdings(request: PodRequest, inventory: Inventory) -> dict[str, Taken]:
    """What a pod with this request holds at most of each GPU of a node, by UUID."""
    containers = [
        ContainerGrant(
            name=container.container,
            shares=tuple(_largest_share(container, gpu) for gpu in inventory.gpus),
            init=container.init,
            sidecar=container.sidecar,
        )
        for container in request.containers
    ]
    return taken_by(containers)


def _largest_share(container: ContainerRequest, gpu: Gpu) -> Share:
    partitioned = _may_be_partitioned(gpu)
    return Share(
        gpu=gpu.uuid,
        memory_mib=gpu.capacity_mib if partitioned else container.memory_on(gpu.capacity_mib),
        cores=container.cores,
        mode=_mode(container, gpu),
        exclusive=container.exclusive or container.cores == 100 == gpu.cores_capacity or partitioned,
    )


def _mode(container: ContainerRequest, gpu: Gpu) -> Mode:
    if gpu.mode is Mode.MPS:
        return Mode.MPS
    return Mode.WHOLE if container.whole else Mode.QUOTA


def _may_be_partitioned(gpu: Gpu) -> bool:
    """Whether the pod may hold a MIG instance of the GPU. Which one is not known."""
    return gpu.mode is Mode.MIG or (gpu.mode is None and Mode.MIG in gpu.modes)


def started_containers(status: Mapping[str, Any]) -> Iterator[str]:
    """The names of the containers that have been started, by the status of their pod."""
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in islice(status.get(field) or (), MAX_CONTAINERS):
            state = container.get("state") or {"waiting": {}}
            if "waiting" not in state or container.get("lastState") or container.get("restartCount"):
                yield container["name"]
