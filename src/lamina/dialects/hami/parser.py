"""A pod in HAMi's dialect -> its request.

What a container can request, per GPU that it gets:

    nvidia.com/gpu                 number of different GPUs; 1 if only one of the others is given
    nvidia.com/gpumem              MiB; without amount and percentage all of the memory (or `defaults.memoryMiB`)
    nvidia.com/gpumem-percentage   percent of the memory, 1 to 100
    nvidia.com/gpucores            percent of the time, 0 to 100; 0 takes whatever is left
    nvidia.com/priority            0 high, 1 low

A count alone, and 100 % of the memory without cores, is a whole GPU: cores 100, nothing else on it. With a default for
memory, a count alone is a share of that size. HAMi reads some mistakes as something else (an amount next to a
percentage, a percentage of 0, a fraction); here these are refused. Given both an amount and a percentage HAMi silently
takes the amount, so the pair is refused too. A count below 1 is a part of a GPU, see `fractions`.

A pod that gives counts alone is NVIDIA's as well: where a node offers native devices it can go there too, and a
privileged one only there.
"""

from collections.abc import Sequence

from lamina.core.grants import MAX_GPUS
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.dialects.containers import (
    ContainerManifest,
    check_limits_equal_requests,
    check_not_privileged,
    explain_privileged,
    is_privileged,
    read_integer,
    read_memory,
)
from lamina.dialects.hami.fractions import read_fraction
from lamina.dialects.hami.section import HamiSection, RequestDefaults
from lamina.dialects.native_devices import native_resources
from lamina.dialects.protocol import PodManifest, ResourceNames
from lamina.errors import BadInput

COUNTS_GPUS = "lamina.dev/counts-gpus"
"""The annotation by which admission marks a pod that gave counts alone and to which it added cores. A user who sets it
only says that a GPU without any share of it would do."""


def parse(pod: PodManifest, names: ResourceNames) -> PodRequest:
    """What the pod requests. Raises BadInput with one sentence."""
    choices, defaults = pod.read_choices(), pod.config.section(HamiSection).defaults
    requesting = [container for container in pod.containers if container.requests_any(names.all)]
    native = _native(pod, requesting, names) if choices.selector == GpuSelector() and not choices.numa_bind else ()
    privileged = next((container for container in requesting if is_privileged(container)), None)
    if privileged and not native:
        check_not_privileged(privileged)
    return PodRequest(
        dialect="hami",
        containers=tuple(_request(container, names, defaults) for container in requesting),
        selector=choices.selector,
        node_policy=choices.node_policy,
        gpu_policy=choices.gpu_policy,
        numa_bind=choices.numa_bind,
        compute_policy=pod.compute_policy(pod.config.section(HamiSection).compute_policy),
        native_devices=native,
        only_native_reason=explain_privileged(privileged) if privileged else "",
    )


def _native(pod: PodManifest, requesting: Sequence[ContainerManifest], names: ResourceNames) -> tuple[str, ...]:
    """The native devices that the pod counts, where it requests nothing else of GPUs: whole ones, of any kind."""
    filled = (names.cores,) if COUNTS_GPUS in pod.annotations else ()
    others = [name for name in names.all if name != names.count and name not in filled]
    if any(container.requests_any(others) or read_fraction(container, names) is not None for container in requesting):
        return ()
    counted = native_resources(name for container in pod.containers for name in container.requested)
    return counted if names.count in counted else ()


def _request(container: ContainerManifest, names: ResourceNames, defaults: RequestDefaults) -> ContainerRequest:
    check_limits_equal_requests(container, names.all)
    percent_of_one = read_fraction(container, names)
    if percent_of_one is not None:
        return ContainerRequest(
            container=container.name,
            count=1,
            memory_percent=percent_of_one,
            init=container.init,
            sidecar=container.sidecar,
        )
    count = _read_count(container, names, defaults)
    memory_mib, percent = _read_memory(container, names, defaults)
    cores = read_integer(container, names.cores, 0, 100)
    if cores is None:
        cores = 100 if percent == 100 else defaults.cores
    return ContainerRequest(
        container=container.name,
        count=count,
        memory_mib=memory_mib,
        memory_percent=percent,
        cores=cores,
        exclusive=cores == 100 and percent == 100,
        priority=read_integer(container, names.priority, 0, 1),
        init=container.init,
        sidecar=container.sidecar,
    )


def _read_count(container: ContainerManifest, names: ResourceNames, defaults: RequestDefaults) -> int:
    count = read_integer(container, names.count, 1, MAX_GPUS)
    if count is not None:
        return count
    given = next(name for name in names.all if name in container.requested)
    if given == names.priority:
        raise BadInput(f"{container.where}: {given} requires a GPU; request {names.count} as well")
    if defaults.count == 0:
        raise BadInput(
            f"{container.where}: {given} requires a count because dialects.hami.defaults.count is 0; "
            f"request {names.count} as well"
        )
    return defaults.count


def _read_memory(
    container: ContainerManifest, names: ResourceNames, defaults: RequestDefaults
) -> tuple[int | None, int | None]:
    """Memory per GPU as an amount in MiB or as a percentage; exactly one of the two."""
    percent = read_integer(container, names.memory_percentage, 1, 100)
    units = read_memory(container, names.memory, names.memory_unit_mib)
    if units is not None and percent is not None:
        raise BadInput(
            f"{container.where}: {names.memory} and {names.memory_percentage} exclude each other; remove one of them"
        )
    if units is not None:
        return units * names.memory_unit_mib, None
    if percent is None and defaults.memory_mib:
        return defaults.memory_mib, None
    return None, 100 if percent is None else percent
