"""A pod in KAI's dialect -> its request. Annotations of the pod request, and its containers name no resource:

    gpu-fraction: "0.5"                     half of the memory of a GPU, and half of its time
    gpu-memory: "2000"                      2000 MiB of a GPU, and whatever time is left
    gpu-fraction-num-devices: "2"           the same of 2 different GPUs of one node
    gpu-fraction-container-name: train      for this container; see `chosen_container` for pods without it
    kai.scheduler/gpu-compute-sharing-mode: sm-sharing    as a client of MPS; so does mps: "true"

    nvidia.com/container.train.gpu-memory.request: 8Gi    memory of one of several containers, in place of the above
    nvidia.com/container.train.gpu-memory.limit: 12Gi     up to this while the GPU has room; either may be absent

KAI rounds memory up to whole percent of a GPU; here it is the amount itself. KAI leaves time to the driver; here a
fraction is a share of the time as well. What admission fills in has to agree with the annotations, because annotations
can change after admission and what kubelet allocates cannot.
"""

from collections.abc import Mapping

from msgspec import structs

from lamina.core.dialect_fields import DialectPolicy
from lamina.core.field_types import Group
from lamina.core.grants import MAX_GPUS
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects.containers import ContainerManifest, check_not_privileged, quote, read_integer
from lamina.dialects.kai import annotations
from lamina.dialects.kai.annotations import CONTAINER, COUNT, FRACTION, MEMORY, OF_CONTAINER, RequestedPart
from lamina.dialects.protocol import PodManifest, ResourceNames
from lamina.errors import BadInput

_SHOWN = "kubectl.kubernetes.io/default-container"


class KaiSection(Group, frozen=True, kw_only=True):
    """KAI's dialect: the annotations gpu-fraction, gpu-memory and so on."""

    compute_policy: DialectPolicy = None


def parse(pod: PodManifest, names: ResourceNames) -> PodRequest:
    """What the pod requests. Raises BadInput with one sentence."""
    choices = pod.read_choices()
    annotations.check_keys(pod.annotations)
    mode = annotations.read_mode(pod.annotations)
    parts, count = _read_parts(pod), annotations.read_count(pod.annotations)
    for container in pod.containers:
        _check_tickets(container, names.ticket, count if container.name in parts else 0)
    return PodRequest(
        dialect="kai",
        containers=tuple(
            _request(container, parts[container.name], count) for container in pod.containers if container.name in parts
        ),
        selector=structs.replace(choices.selector, modes=choices.selector.modes or (mode,)),
        node_policy=choices.node_policy,
        gpu_policy=choices.gpu_policy,
        numa_bind=choices.numa_bind,
        compute_policy=pod.compute_policy(pod.config.section(KaiSection).compute_policy),
    )


def _read_parts(pod: PodManifest) -> Mapping[str, RequestedPart]:
    """What each container requests, by name."""
    written = pod.annotations
    part, by_container = annotations.read_part(written), annotations.read_parts_by_container(written)
    pod_wide = next((key for key in (FRACTION, MEMORY, CONTAINER) if key in written), "")
    if by_container and pod_wide:
        raise BadInput(f"annotations {pod_wide} and {OF_CONTAINER}... exclude each other; remove one of them")
    if part is None and not by_container:
        raise BadInput(_explain_missing(written, pod))
    names = [container.name for container in pod.containers]
    if part is not None:
        by_container = {chosen_container(pod): part}
    if unknown := sorted(by_container.keys() - set(names)):
        key = CONTAINER if part is not None else f"{OF_CONTAINER}..."
        raise BadInput(f"annotation {key} names container {quote(unknown[0])}, which the pod does not have; correct it")
    return by_container


def chosen_container(pod: PodManifest) -> str:
    """The container that the annotations of the pod are about: the one that they name, else the one that the pod shows
    to kubectl by default, as Argo Workflows and Istio write it, else the first that is no init container."""
    main = [container.name for container in pod.containers if not container.init]
    shown = pod.annotations.get(_SHOWN, "")
    return pod.annotations.get(CONTAINER, shown if shown in main else next(iter(main), ""))


def _explain_missing(written: Mapping[str, str], pod: PodManifest) -> str:
    """What to say about a pod that names containers, numbers or tickets, but no amount."""
    alone = next((key for key in (COUNT, CONTAINER) if key in written), "")
    if alone:
        return f"annotation {alone} requires an amount; add {FRACTION} or {MEMORY}"
    where = next(container.where for container in pod.containers if container.requested)
    return f"{where}: admission fills in the GPUs of annotations, and there are none; add {FRACTION} or {MEMORY}"


def _check_tickets(container: ContainerManifest, ticket: str, count: int) -> None:
    """Raises BadInput where the container requests other tickets than admission fills in."""
    if ticket in container.requested and read_integer(container, ticket, 0, MAX_GPUS) != count:
        raise BadInput(
            f"{container.where}: {ticket} is filled in at admission and must be {count}, as the annotations of the pod "
            "say; remove it, or create the pod again"
        )


def _request(container: ContainerManifest, part: RequestedPart, count: int) -> ContainerRequest:
    check_not_privileged(container)
    return ContainerRequest(
        container=container.name,
        count=count,
        memory_mib=part.memory_mib,
        memory_percent=part.percent,
        most_memory_mib=part.most_memory_mib,
        cores=part.percent or 0,
        init=container.init,
        sidecar=container.sidecar,
    )
