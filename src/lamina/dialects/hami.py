"""The vocabulary of HAMi and of 4paradigm's scheduler, its ancestor: pod specification in, requests out.

What a container may ask, per GPU that it gets:

    nvidia.com/gpu                 number of different GPUs; 1 where only one of the others is named
    nvidia.com/gpumem              MiB; without amount and percentage all of the memory (or `defaultMemory`)
    nvidia.com/gpumem-percentage   percent of the memory, 1 to 100
    nvidia.com/gpucores            percent of the time, 0 to 100; 0 takes whatever is left
    nvidia.com/priority            0 high, 1 low

A count alone, and 100 % of the memory without cores, is a whole GPU: cores 100, nobody else on it. `defaultMemory`
over 0 turns a count alone into a share of that size. HAMi reads some mistakes as something else (an amount beside a
percentage, a percentage of 0, a fraction); here these are refused. Between an amount and a percentage HAMi takes the
amount without a word, so the pair is refused too. A count below 1 is CCE's way to ask a part of a GPU, see `cce`.

A pod that names counts alone is NVIDIA's as well: where a node gives GPUs or replicas of them out by count, it may go
there too, and a privileged one only there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.dialects import annotations, cce
from lamina.dialects.config import Config
from lamina.dialects.containers import (
    Container,
    check_limits_equal_requests,
    check_not_privileged,
    is_privileged,
    sees_all,
    whole_number,
)
from lamina.dialects.nvidia.resources import countable
from lamina.dialects.vocabularies import Vocabulary, hami
from lamina.errors import BadInput
from lamina.model.requests import ContainerRequest, PodRequest, Wishes


def parse(pod: Mapping[str, Any], containers: Sequence[Container], config: Config) -> PodRequest:
    """What the pod with these containers asks. Raises BadInput with one sentence.

    The answer is the same before and after admission has filled in the defaults.
    """
    names = hami(config)
    choices = annotations.read((pod.get("metadata") or {}).get("annotations") or {}, config)
    asking = [container for container in containers if container.names_any(names.all)]
    plain = _plain(pod, containers, asking, names) if choices.wishes == Wishes() and not choices.numa_bind else ()
    privileged = [container for container in asking if is_privileged(container)]
    if privileged and not plain:
        check_not_privileged(privileged[0])
    return PodRequest(
        dialect=names.dialect,
        containers=tuple(_request(container, names, config) for container in asking),
        wishes=choices.wishes,
        node_policy=choices.node_policy,
        gpu_policy=choices.gpu_policy,
        numa_bind=choices.numa_bind,
        compute_policy=config.compute_policy,
        plain=plain,
        only_plain=sees_all(privileged[0]) if privileged else "",
    )


def _plain(
    pod: Mapping[str, Any], containers: Sequence[Container], asking: Sequence[Container], names: Vocabulary
) -> tuple[str, ...]:
    """What the pod counts, where it asks nothing else of GPUs: whole ones, of any kind."""
    filled = {names.cores} if annotations.COUNTS in ((pod.get("metadata") or {}).get("annotations") or {}) else set()
    rest = [name for name in names.all if name not in {names.count, *filled}]
    if any(container.names_any(rest) or cce.fraction(container, names) is not None for container in asking):
        return ()
    counted = countable(name for container in containers for name in container.asked)
    return counted if names.count in counted else ()


def _request(container: Container, names: Vocabulary, config: Config) -> ContainerRequest:
    check_limits_equal_requests(container, names.all)
    percent_of_one = cce.fraction(container, names)
    if percent_of_one is not None:
        return ContainerRequest(
            container=container.name,
            count=1,
            memory_percent=percent_of_one,
            init=container.init,
            sidecar=container.sidecar,
        )
    count = _read_count(container, names, config)
    memory_mib, percent = _read_memory(container, names, config)
    cores = whole_number(container, names.cores, 0, 100)
    if cores is None:
        cores = 100 if percent == 100 else config.hami.default_cores
    return ContainerRequest(
        container=container.name,
        count=count,
        memory_mib=memory_mib,
        memory_percent=percent,
        cores=cores,
        exclusive=cores == 100 and percent == 100,
        priority=whole_number(container, names.priority, 0, 1),
        init=container.init,
        sidecar=container.sidecar,
    )


def _read_count(container: Container, names: Vocabulary, config: Config) -> int:
    count = whole_number(container, names.count, 1, None)
    if count is not None:
        return count
    named = next(name for name in names.all if name in container.asked)
    if named == names.priority:
        raise BadInput(f"{container.where} names {named} but asks no GPU; name {names.count} as well")
    if config.hami.default_gpu_num == 0:
        raise BadInput(
            f"{container.where} names {named} but no count, and defaultGPUNum is 0; name {names.count} as well"
        )
    return config.hami.default_gpu_num


def _read_memory(container: Container, names: Vocabulary, config: Config) -> tuple[int | None, int | None]:
    """Memory per GPU as an amount in MiB or as a percentage; exactly one of the two."""
    percent = whole_number(container, names.memory_percentage, 1, 100)
    units = whole_number(container, names.memory, 1, None)
    if units is not None and percent is not None:
        raise BadInput(f"{container.where} names both {names.memory} and {names.memory_percentage}; name one of them")
    if units is not None:
        return units * config.hami.memory_factor, None
    if percent is None and config.hami.default_memory:
        return config.hami.default_memory, None
    return None, 100 if percent is None else percent
