"""HAMi's section of the configuration, `dialects.hami`."""

from typing import Annotated

from lamina.core.dialect_fields import DialectPolicy
from lamina.core.field_types import Count, Group, Mebibytes, MemoryUnit, Percent, ResourceName, doc

_REASON = "The name in HAMi's manifests and documentation."


class HamiResources(Group, frozen=True, kw_only=True):
    """Names of the resources by which containers request GPUs."""

    count: Annotated[ResourceName, doc("Resource for the number of GPUs.", reason=_REASON)] = "nvidia.com/gpu"
    memory: Annotated[
        ResourceName, doc("Resource for memory per GPU, in units of `memoryUnitMiB`.", reason=_REASON)
    ] = "nvidia.com/gpumem"
    memory_percentage: Annotated[
        ResourceName, doc("Resource for memory per GPU in percent of the GPU's memory.", reason=_REASON)
    ] = "nvidia.com/gpumem-percentage"
    cores: Annotated[
        ResourceName, doc("Resource for compute time per GPU in percent of the GPU's time.", reason=_REASON)
    ] = "nvidia.com/gpucores"
    priority: Annotated[
        ResourceName, doc("Resource for the container's priority: 0 is high, 1 is low.", reason=_REASON)
    ] = "nvidia.com/priority"


class RequestDefaults(Group, frozen=True, kw_only=True):
    """What a container gets that names only some of the resources."""

    count: Annotated[
        Count,
        doc(
            "Number of GPUs if only memory or compute is requested; 0 refuses such pods.",
            unit="GPUs",
            reason="HAMi's default; a request for memory means a share of one GPU.",
        ),
    ] = 1
    memory_mib: Annotated[
        Mebibytes,
        doc(
            "Memory if a GPU is requested without memory; 0 means all memory of the GPU.",
            unit="MiB",
            reason="A request for a GPU alone then means a whole GPU, as without Lamina.",
        ),
    ] = 0
    cores: Annotated[
        Percent,
        doc(
            "Compute share if a shared GPU is requested without one; 0 sets no share, 100 makes the GPU exclusive.",
            unit="percent",
            reason="HAMi's default; containers without a share use the time that is left.",
        ),
    ] = 0


class HamiSection(Group, frozen=True, kw_only=True):
    """HAMi's dialect, which is also 4paradigm's: nvidia.com/gpu, nvidia.com/gpumem and so on."""

    resources: Annotated[HamiResources, doc("Names of the resources by which containers request GPUs.")] = (
        HamiResources()
    )
    memory_unit_mib: Annotated[
        MemoryUnit,
        doc(
            "Memory that one unit of the memory resource stands for; 1024 makes it GiB.",
            unit="MiB",
            reason="HAMi's default.",
        ),
    ] = 1
    defaults: Annotated[RequestDefaults, doc("What a container gets that names only some of the resources.")] = (
        RequestDefaults()
    )
    compute_policy: DialectPolicy = None
