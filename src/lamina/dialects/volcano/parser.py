"""A pod in Volcano's dialect -> its request.

What a container can request, per GPU that it gets:

    volcano.sh/vgpu-number               number of different GPUs; 1 if only one of the others is given
    volcano.sh/vgpu-memory               MiB times `gpuMemoryFactor`; without amount and percentage all of the memory
    volcano.sh/vgpu-memory-percentage    percent of the memory; takes precedence over the amount
    volcano.sh/vgpu-cores                percent of the time; 0 takes whatever is left, 100 the GPU for itself

Volcano reads limits alone, ignores init containers, and lets a pod that gives only cores or a percentage run without
any limit. Here requests and init containers count as they do in Kubernetes, and such a pod gets one GPU.
"""

from lamina.core.grants import MAX_GPUS
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects.containers import (
    ContainerManifest,
    check_limits_equal_requests,
    check_not_privileged,
    read_integer,
    read_memory,
)
from lamina.dialects.protocol import PodManifest, ResourceNames
from lamina.dialects.volcano.section import VolcanoSection


def parse(pod: PodManifest, names: ResourceNames) -> PodRequest:
    """What the pod requests. Raises BadInput with one sentence."""
    choices = pod.read_choices()
    return PodRequest(
        dialect="volcano",
        containers=tuple(
            _request(container, names) for container in pod.containers if container.requests_any(names.all)
        ),
        selector=choices.selector,
        node_policy=choices.node_policy,
        gpu_policy=choices.gpu_policy,
        numa_bind=choices.numa_bind,
        compute_policy=pod.compute_policy(pod.config.section(VolcanoSection).compute_policy),
    )


def _request(container: ContainerManifest, names: ResourceNames) -> ContainerRequest:
    check_not_privileged(container)
    check_limits_equal_requests(container, names.all)
    percent = read_integer(container, names.memory_percentage, 1, 100)
    units = read_memory(container, names.memory, names.memory_unit_mib)
    by_amount = units is not None and percent is None
    return ContainerRequest(
        container=container.name,
        count=read_integer(container, names.count, 1, MAX_GPUS) or 1,
        memory_mib=units * names.memory_unit_mib if units is not None and by_amount else None,
        memory_percent=None if by_amount else percent or 100,
        cores=read_integer(container, names.cores, 0, 100) or 0,
        init=container.init,
        sidecar=container.sidecar,
    )
