"""What would have to change so that a pod fits on a node where it misses by something."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from lamina.core.requests import PodRequest
from lamina.placement.explanation.misfit import Misfit
from lamina.placement.rules.refusal import Cause
from lamina.placement.search.fit import PodPlacement, fit

_ENDED = "wait until pods on the node have ended"
_OTHER = {
    Cause.NO_GPU: "add GPUs to the node",
    Cause.UNHEALTHY: "wait until a GPU of the node is healthy, see `lamina gpus`",
    Cause.CORDONED: "uncordon a GPU with `lamina uncordon gpu`",
    Cause.MODE: "wait until the pods have ended that use the GPU in another mode",
    Cause.TYPE: "change the annotation that selects the type of the GPU",
    Cause.UUID: "change the annotation that selects the GPU by UUID",
    Cause.NOT_ALLOWED: "accept another mode, or allow it in the configuration of the node",
    Cause.ONE_GPU: "request one GPU for each container, or accept another mode",
    Cause.PROFILE: "request no more than the largest MIG profile has",
    Cause.QUOTA: "raise the quota, or wait until pods of the namespace have ended",
    Cause.SLOTS: "wait until a container on the node has ended, or raise sharing.slots",
    Cause.APART: "request fewer GPUs, or remove the annotation that binds the pod to a NUMA node",
    Cause.MIXED: "request fewer GPUs, or wait until GPUs of the node are idle",
    Cause.TOGETHER: "request less in one of the containers",
}


def remedies(request: PodRequest, misfit: Misfit) -> Iterator[str]:
    """Each is enough alone, as far as can be known. A smaller request is suggested only if it fits on this node."""
    needed, available, unit = misfit.numbers
    cause = misfit.cause
    smaller: dict[str, Any] = {}
    if cause in (Cause.MEMORY, Cause.SIZE, Cause.QUOTA) and unit == "MiB":
        smaller = {"memory_mib": available, "memory_percent": None}
    elif cause in (Cause.CORES, Cause.SIZE, Cause.QUOTA) and unit == "%":
        smaller = {"cores": available}
    elif cause is Cause.COUNT:
        smaller = {"count": available}
    if smaller and available > 0 and _fits(request, misfit, smaller):
        yield f"request at most {available} {unit}"
    if cause in _OTHER:
        yield _OTHER[cause]
    elif cause is Cause.MEMORY:
        yield f"wait until {needed - available} MiB more are free on a GPU of the node"
    elif cause is Cause.CORES:
        yield f"wait until {needed - available} % more of the time of a GPU of the node are free"
    elif cause in (Cause.SIZE, Cause.COUNT):
        yield "add a node with larger GPUs" if cause is Cause.SIZE else "add a node with more GPUs"
    else:
        yield _ENDED


def _fits(request: PodRequest, misfit: Misfit, smaller: dict[str, Any]) -> bool:
    containers = tuple(replace(each, **smaller) if each == misfit.container else each for each in request.containers)
    return isinstance(fit(replace(request, containers=containers), misfit.node), PodPlacement)
