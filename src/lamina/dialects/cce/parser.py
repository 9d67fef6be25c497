"""A pod in CCE's dialect -> its request: memory in units of 128 MiB, compute in steps of 5 %.

    volcano.sh/gpu-mem.128Mi          40 is 5120 MiB; alone, the GPU's time is shared by all
    volcano.sh/gpu-core.percentage    5 to 100 in steps of 5, only together with memory
    label volcano.sh/gpu-num: "2"     both amounts split evenly over 2 GPUs of one node

A GPU serves either containers with a share of compute or containers without at a time, at most 20 of them, and a
container that takes all of its memory or of its time has it to itself, with all of its memory. Init containers get no
share. A GPU is never partitioned by MIG for them: kubelet allocates exactly the units that were requested, and an
instance has its own size.

A container requests amounts in sum, whatever the number of GPUs. CCE's fractions, such as nvidia.com/gpu: 0.1, use
NVIDIA's name and belong to the dialect that reads it.
"""

from typing import Annotated

from lamina.core.field_types import ComputePolicy, Group, doc
from lamina.core.gpus import Mode
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest, SharingRules
from lamina.dialects.containers import (
    ContainerManifest,
    check_limits_equal_requests,
    check_not_privileged,
    quote,
    read_integer,
    read_memory,
)
from lamina.dialects.protocol import PodManifest, ResourceNames
from lamina.errors import BadInput

UNIT_MIB = 128
CORES_STEP = 5
MAX_SHARERS = 20
MAX_GPUS_OF_POD = 16
GPU_NUM = "volcano.sh/gpu-num"
"""A label, not an annotation."""

SHARING = SharingRules(most=MAX_SHARERS, one_isolation=True, alone_below_mib=UNIT_MIB)


class CceSection(Group, frozen=True, kw_only=True):
    """CCE's dialect: volcano.sh/gpu-mem.128Mi and volcano.sh/gpu-core.percentage."""

    compute_policy: Annotated[
        ComputePolicy,
        doc(
            "How shares of compute of this dialect's pods are enforced, as in `sharing.computePolicy`, which does not "
            "count for them.",
            reason="CCE isolates compute.",
        ),
    ] = "cap"


def parse(pod: PodManifest, names: ResourceNames) -> PodRequest:
    """What the pod requests. Raises BadInput with one sentence."""
    gpus = _read_gpu_num(pod)
    return PodRequest(
        dialect="cce",
        containers=tuple(
            _request(container, names, gpus) for container in pod.containers if container.requests_any(names.all)
        ),
        selector=GpuSelector(modes=(Mode.QUOTA,)),
        compute_policy=pod.compute_policy(pod.config.section(CceSection).compute_policy),
    )


def _request(container: ContainerManifest, names: ResourceNames, gpus: int) -> ContainerRequest:
    if container.init:
        name = next(name for name in names.all if name in container.requested)
        raise BadInput(f"{container.where}: an init container cannot request {name}; remove it there")
    check_not_privileged(container)
    check_limits_equal_requests(container, names.all)
    cores = read_integer(container, names.cores, CORES_STEP, 100, step=CORES_STEP)
    units = read_memory(container, names.memory, names.memory_unit_mib)
    if units is None:
        raise BadInput(f"{container.where}: {names.cores} requires memory; request {names.memory} as well")
    return ContainerRequest(
        container=container.name,
        count=gpus,
        memory_mib=_per_gpu(container, names.memory, units, gpus, 1) * UNIT_MIB,
        cores=_per_gpu(container, names.cores, cores or 0, gpus, CORES_STEP),
        sharing=SHARING,
    )


def _per_gpu(container: ContainerManifest, name: str, amount: int, gpus: int, step: int) -> int:
    """What each GPU gives of an amount in sum."""
    if amount % (gpus * step):
        raise BadInput(
            f"{container.where}: {name} must be a multiple of {gpus * step} because label {GPU_NUM} is {gpus}, "
            f"got {amount}"
        )
    return amount // gpus


def _read_gpu_num(pod: PodManifest) -> int:
    written = pod.labels.get(GPU_NUM)
    if written is None:
        return 1
    if not written.isascii() or not written.isdecimal() or not 1 <= int(written) <= MAX_GPUS_OF_POD:
        raise BadInput(f"label {GPU_NUM} must be an integer from 1 to {MAX_GPUS_OF_POD}, got {quote(written)}")
    return int(written)
