"""Volcano's section of the configuration, `dialects.volcano`."""

from typing import Annotated

from lamina.core.dialect_fields import DialectPolicy
from lamina.core.field_types import Group, MemoryUnit, ResourceName, doc

_REASON = "The name in Volcano's manifests and documentation."


class VolcanoResources(Group, frozen=True, kw_only=True):
    """Names of the resources by which containers request GPUs."""

    count: Annotated[ResourceName, doc("Resource for the number of GPUs.", reason=_REASON)] = "volcano.sh/vgpu-number"
    memory: Annotated[
        ResourceName, doc("Resource for memory per GPU, in units of `memoryUnitMiB`.", reason=_REASON)
    ] = "volcano.sh/vgpu-memory"
    memory_percentage: Annotated[
        ResourceName, doc("Resource for memory per GPU in percent of the GPU's memory.", reason=_REASON)
    ] = "volcano.sh/vgpu-memory-percentage"
    cores: Annotated[
        ResourceName, doc("Resource for compute time per GPU in percent of the GPU's time.", reason=_REASON)
    ] = "volcano.sh/vgpu-cores"


class VolcanoSection(Group, frozen=True, kw_only=True):
    """Volcano's dialect: volcano.sh/vgpu-number, volcano.sh/vgpu-memory and so on."""

    resources: Annotated[VolcanoResources, doc("Names of the resources by which containers request GPUs.")] = (
        VolcanoResources()
    )
    memory_unit_mib: Annotated[
        MemoryUnit,
        doc(
            "Memory that one unit of the memory resource stands for; 1024 makes it GiB.",
            unit="MiB",
            reason="Volcano's default for `gpuMemoryFactor`.",
        ),
    ] = 1
    compute_policy: DialectPolicy = None
