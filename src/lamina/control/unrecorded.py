"""Pods that run with GPUs although no grant says which: somebody deleted the record, and nobody remembers it.

Marks on the pod are hints for people, and its container can be asked nothing. What is certain is what the pod asked.
So it counts with all of that on each GPU of its node, until it ends: too much, and never too little.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from lamina.control.stages import Stage, pod_state
from lamina.dialects import parse
from lamina.dialects.config import Config
from lamina.errors import BadInput
from lamina.model.gpus import Gpu, Inventory, Mode
from lamina.model.grants import ContainerGrant, Share
from lamina.model.ledger import Taken, taken_by
from lamina.model.requests import ContainerRequest, PodRequest


class Asked(NamedTuple):
    """What the containers of a pod asked that have run on its node."""

    namespace: str
    pod: str
    request: PodRequest


def asked_by(pod: Mapping[str, Any], config: Config) -> Asked | None:
    """What containers of the pod that have been started asked of GPUs; None where none of them can hold any.

    A container that never started holds nothing, and cannot start without a grant.
    """
    if pod_state(pod).stage is not Stage.BOUND:
        return None
    started = frozenset(_started(pod.get("status") or {}))
    if not started:
        return None
    try:
        request = parse(pod, config)
    except BadInput:
        # It runs with what nobody can read: it may hold whole GPUs.
        whole = ContainerRequest(container="", count=1, memory_percent=100, cores=100, exclusive=True)
        request = PodRequest(dialect="", containers=(whole,))
    else:
        containers = tuple(each for each in request.containers if each.container in started) if request else ()
        if request is None or not containers:
            return None
        request = msgspec.structs.replace(request, containers=containers)
    meta = pod["metadata"]
    return Asked(meta.get("namespace") or "", meta["name"], request)


def most_held(request: PodRequest, inventory: Inventory) -> dict[str, Taken]:
    """What such a pod holds at most of each GPU, by UUID."""
    containers = [
        ContainerGrant(
            name=each.container,
            shares=tuple(
                Share(
                    gpu=gpu.uuid,
                    memory_mib=gpu.capacity_mib if _may_be_cut(gpu) else each.memory_on(gpu.capacity_mib),
                    cores=each.cores,
                    mode=Mode.WHOLE if each.whole else Mode.QUOTA,
                    exclusive=each.exclusive or each.cores == 100 == gpu.cores_capacity or _may_be_cut(gpu),
                )
                for gpu in inventory.gpus
            ),
            init=each.init,
            sidecar=each.sidecar,
        )
        for each in request.containers
    ]
    return taken_by(containers)


def _may_be_cut(gpu: Gpu) -> bool:
    """Whether the pod may have an instance of the GPU, and nobody knows which."""
    return gpu.mode is Mode.MIG or (gpu.mode is None and Mode.MIG in gpu.modes)


def _started(status: Mapping[str, Any]) -> Iterator[str]:
    for field in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(field) or ():
            state = each.get("state") or {"waiting": {}}
            if "waiting" not in state or each.get("lastState") or each.get("restartCount"):
                yield each["name"]
