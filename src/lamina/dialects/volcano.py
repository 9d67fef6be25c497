"""The vocabulary of Volcano's vGPUs: pod specification in, requests out.

What a container may ask, per GPU that it gets:

    volcano.sh/vgpu-number               number of different GPUs; 1 where only one of the others is named
    volcano.sh/vgpu-memory               MiB times `gpuMemoryFactor`; without amount and percentage all of the memory
    volcano.sh/vgpu-memory-percentage    percent of the memory; goes before the amount
    volcano.sh/vgpu-cores                percent of the time; 0 takes whatever is left, 100 the GPU for itself

Volcano reads limits alone, looks at no init container, and lets a pod that names only cores or a percentage run without
any limit. Here requests and init containers count as they do in Kubernetes, and such a pod gets one GPU.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.dialects import annotations
from lamina.dialects.config import Config
from lamina.dialects.containers import Container, check_limits_equal_requests, check_not_privileged, whole_number
from lamina.dialects.vocabularies import Vocabulary, volcano
from lamina.model.requests import ContainerRequest, PodRequest


def parse(pod: Mapping[str, Any], containers: Sequence[Container], config: Config) -> PodRequest:
    """What the pod with these containers asks. Raises BadInput with one sentence."""
    names = volcano(config)
    choices = annotations.read((pod.get("metadata") or {}).get("annotations") or {}, config)
    return PodRequest(
        dialect=names.dialect,
        containers=tuple(
            _request(container, names, config) for container in containers if container.names_any(names.all)
        ),
        wishes=choices.wishes,
        node_policy=choices.node_policy,
        gpu_policy=choices.gpu_policy,
        numa_bind=choices.numa_bind,
        compute_policy=config.compute_policy,
    )


def _request(container: Container, names: Vocabulary, config: Config) -> ContainerRequest:
    check_not_privileged(container)
    check_limits_equal_requests(container, names.all)
    percent = whole_number(container, names.memory_percentage, 1, 100)
    units = whole_number(container, names.memory, 1, None)
    by_amount = units is not None and percent is None
    return ContainerRequest(
        container=container.name,
        count=whole_number(container, names.count, 1, None) or 1,
        memory_mib=units * config.volcano.gpu_memory_factor if units is not None and by_amount else None,
        memory_percent=None if by_amount else percent or 100,
        cores=whole_number(container, names.cores, 0, 100) or 0,
        init=container.init,
        sidecar=container.sidecar,
    )
