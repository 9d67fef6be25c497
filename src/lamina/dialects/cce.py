"""The vocabulary of Huawei CCE: memory in units of 128 MiB, compute in steps of 5 %, or a fraction of a GPU.

    volcano.sh/gpu-mem.128Mi          40 is 5120 MiB; alone, the GPU's time is shared by all
    volcano.sh/gpu-core.percentage    5 to 100 in steps of 5, only beside memory
    label volcano.sh/gpu-num: "2"     both amounts split evenly over 2 GPUs of one node
    nvidia.com/gpu: 0.1               10 % of the memory of one GPU

A GPU serves either containers with a share of compute or containers without at a time, at most 20 of them, and a
container that takes all of its memory or of its time has it to itself. Init containers get no share. A GPU is never cut
by MIG for them: kubelet hands out exactly the units that were asked, and an instance has its own size.

A container asks amounts in sum, whatever the number of GPUs. The API server takes no fraction of an extended resource,
so admission writes `nvidia.com/gpu: 0.1` in a pod as one GPU and 10 % of its memory; `templates` has the form for
templates. CCE cuts that memory down to 128 MiB; here it is the percentage itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.dialects.containers import Container, check_limits_equal_requests, check_not_privileged, whole_number
from lamina.dialects.vocabularies import CCE, Vocabulary
from lamina.errors import BadInput
from lamina.model.gpus import Mode
from lamina.model.grants import ComputePolicy
from lamina.model.kube_quantity import parse_quantity
from lamina.model.requests import ContainerRequest, PodRequest, Sharing, Wishes

UNIT_MIB = 128
CORES_STEP = 5
MOST_SHARERS = 20
GPU_NUM = "volcano.sh/gpu-num"
"""A label, not an annotation."""

PERCENTAGE = "lamina.dev/gpu-percentage"
"""In a template, beside a count of 0: a fraction of a GPU in percent. Only admission writes it."""

SHARING = Sharing(most=MOST_SHARERS, one_isolation=True, alone_below_mib=UNIT_MIB)


def parse(pod: Mapping[str, Any], containers: Sequence[Container]) -> PodRequest:
    """What the pod with these containers asks. Raises BadInput with one sentence."""
    gpus = _gpus((pod.get("metadata") or {}).get("labels") or {})
    return PodRequest(
        dialect=CCE.dialect,
        containers=tuple(_request(container, gpus) for container in containers if container.names_any(CCE.all)),
        wishes=Wishes(modes=(Mode.QUOTA,)),
        compute_policy=ComputePolicy.CAP,
    )


def fraction(container: Container, names: Vocabulary) -> int | None:
    """The percentage of one GPU's memory that a count below 1 stands for, as people or as templates write it.

    None for any other count. Raises BadInput for a fraction that is none of those allowed.
    """
    if names.count not in container.asked:
        return None
    written = container.asked[names.count]
    here = f"{container.where}: {names.count}"
    percent = parse_quantity(written, where=here).value * 100
    if percent == 0 and PERCENTAGE in container.asked:
        return whole_number(container, PERCENTAGE, 1, 99)
    if not 0 < percent < 100:
        return None
    if percent.denominator != 1:
        raise BadInput(f"{here} is {written!r}; allowed is a whole number from 1 or a fraction from 0.01 to 0.99")
    other = next((name for name in names.all if name in container.asked and name != names.count), None)
    if other is not None:
        raise BadInput(f"{here} is {written!r} beside {other}; a fraction of a GPU stands alone")
    return int(percent)


def _request(container: Container, gpus: int) -> ContainerRequest:
    if container.init:
        raise BadInput(f"{container.where} is an init container; {_named(container)} is for ordinary containers only")
    check_not_privileged(container)
    check_limits_equal_requests(container, CCE.all)
    cores = whole_number(container, CCE.cores, CORES_STEP, 100, step=CORES_STEP)
    units = whole_number(container, CCE.memory, 1, None)
    if units is None:
        raise BadInput(f"{container.where} names {CCE.cores} but no {CCE.memory}; name both, or memory alone")
    return ContainerRequest(
        container=container.name,
        count=gpus,
        memory_mib=_each(container, CCE.memory, units, gpus, 1) * UNIT_MIB,
        cores=_each(container, CCE.cores, cores or 0, gpus, CORES_STEP),
        sharing=SHARING,
    )


def _each(container: Container, name: str, amount: int, gpus: int, step: int) -> int:
    """What each GPU gives of an amount in sum."""
    if amount % (gpus * step):
        raise BadInput(
            f"{container.where}: {name} is {amount}, which {gpus} GPUs ({GPU_NUM}) cannot share evenly; "
            f"allowed are multiples of {gpus * step}"
        )
    return amount // gpus


def _named(container: Container) -> str:
    return next(name for name in CCE.all if name in container.asked)


def _gpus(labels: Mapping[str, str]) -> int:
    written = labels.get(GPU_NUM)
    if written is None:
        return 1
    if not written.isascii() or not written.isdecimal() or not 1 <= int(written) <= 16:
        raise BadInput(f"label {GPU_NUM} is {written!r}; allowed is a whole number from 1 to 16")
    return int(written)
