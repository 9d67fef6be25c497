"""What the annotation `lamina.dev/resize` asks for, and the grant that would follow from it.

main=8000         8000 MiB on each GPU of the container main
main=8000,30      and 30 percent of the time
main=,30          30 percent, and as much memory as before
main=8000;side=2  several containers
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import structs

from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy, ContainerGrant, ContainerSize, Grant, Share
from lamina.core.quantities import MAX_MIB
from lamina.core.requests import MAX_GPU_CONTAINERS
from lamina.core.sizes import RESIZE, RESIZE_STATUS, RESIZE_WHEN_HELD, WAIT, size_of
from lamina.errors import BadInput

MAX_TEXT = 2048
"""Characters of the annotation that are read; a longer one is refused, because its end is missing or too much."""
_SHOWN = 100


class SizeRequest(NamedTuple):
    """MiB and percent for one container; None leaves what it has."""

    memory_mib: int | None
    cores: int | None


def read_requests(written: str) -> Mapping[str, SizeRequest]:
    """By container. Raises BadInput."""
    items = written.split(";")
    if len(written) >= MAX_TEXT or len(items) > MAX_GPU_CONTAINERS:
        raise BadInput(f"annotation {RESIZE} may name at most {MAX_GPU_CONTAINERS} containers in {MAX_TEXT} characters")
    requests: dict[str, SizeRequest] = {}
    for item in items:
        name, named, amounts = item.strip().partition("=")
        memory, _, cores = amounts.partition(",")
        request = SizeRequest(_number(memory, MAX_MIB), _number(cores, 100))
        if not name or not named or request == (None, None) or 0 in request or name in requests:
            raise BadInput(
                f"annotation {RESIZE} must be container=MiB,percent, as main=8000,30 or main=8000, "
                f"got {written[:_SHOWN]!a}"
            )
        requests[name] = request
    return requests


def _number(text: str, most: int) -> int | None:
    """None where nothing is written, 0 where it is no number that can be meant."""
    text = text.strip()
    if not text:
        return None
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= most else 0


def wanted(grant: Grant, requests: Mapping[str, SizeRequest]) -> Mapping[str, ContainerSize]:
    """The sizes that containers are to have instead of those that they may use now. Raises BadInput."""
    containers = {container.name: container for container in grant.containers}
    sizes = {}
    for name, request in requests.items():
        if name not in containers:
            raise BadInput(
                f"container {name[:_SHOWN]!a} has no share of a GPU; it has to be one of {', '.join(containers)}"
            )
        container, before = containers[name], size_of(containers[name])
        memory = before.memory_mib if request.memory_mib is None else request.memory_mib
        cores = before.cores if request.cores is None else request.cores
        if (memory, cores) != (before.memory_mib, before.cores):
            _check(container, memory, cores)
            sizes[name] = ContainerSize(generation=before.generation + 1, memory_mib=memory, cores=cores)
    return sizes


def _check(container: ContainerGrant, memory: int, cores: int) -> None:
    """Raises BadInput for a container that cannot be resized, or not to so much memory or so many cores."""
    if container.init and not container.sidecar:
        raise BadInput(f"container {container.name} is an init container, which cannot be resized")
    for share in container.shares:
        if problem := _problem(share, memory, cores):
            raise BadInput(f"container {container.name}: {problem}")
    if len({(share.memory_mib, share.cores) for share in container.shares}) > 1:
        raise BadInput(f"container {container.name} has different shares of its GPUs, which cannot be resized")


def _problem(share: Share, memory: int, cores: int) -> str:
    if share.mode is Mode.MPS:
        return "MPS sets limits when a program starts, so its clients cannot be resized; create the pod again"
    if share.mode is not Mode.QUOTA or share.exclusive:
        return "only a share of a GPU can be resized, and this one has the GPU or an instance of it to itself"
    if share.physical_mib:
        return "the memory of its GPU is granted more than once, so its share cannot be resized"
    if cores != share.cores and share.compute_policy is ComputePolicy.NONE:
        return "it has no share of compute that is enforced, so only its memory can be resized"
    if share.most_memory_mib and memory > share.most_memory_mib:
        return f"its limit of memory is {share.most_memory_mib} MiB, so it cannot have {memory}"
    if share.most_cores and cores > share.most_cores:
        return f"its limit of compute is {share.most_cores} percent, so it cannot have {cores}"
    return ""


def with_sizes(grant: Grant, sizes: Mapping[str, ContainerSize]) -> Grant:
    """The grant with these sizes."""
    containers = tuple(
        structs.replace(each, size=sizes[each.name]) if each.name in sizes else each for each in grant.containers
    )
    return structs.replace(grant, containers=containers)


class ResizedPod(NamedTuple):
    """What its annotations say: what it asks for, which may be nothing, and what became of it.

    `waits`: a size below what programs hold waits for them instead of being refused.
    """

    namespace: str
    name: str
    request: str
    status: str
    waits: bool = False


def resized_pod(pod: Mapping[str, Any]) -> ResizedPod | None:
    """None for a pod that was never to be resized."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    request, status = str(annotations.get(RESIZE) or "")[:MAX_TEXT], str(annotations.get(RESIZE_STATUS) or "")
    if not request and not status:
        return None
    waits = str(annotations.get(RESIZE_WHEN_HELD) or "").strip() == WAIT
    return ResizedPod(metadata["namespace"], metadata["name"], request, status, waits)
