"""The toy dialect's section of the configuration, `dialects.toy`."""

from typing import Annotated

from lamina.core.field_types import Group, MemoryUnit, ResourceName, Switch, doc


class ToyResources(Group, frozen=True, kw_only=True):
    """Names of the resources by which containers request GPUs."""

    count: Annotated[ResourceName, doc("Resource for the number of GPUs.", reason="Toys have it.")] = "toy.example/gpu"
    memory: Annotated[ResourceName, doc("Resource for memory per GPU.", reason="Toys have it.")] = "toy.example/gib"


class ToySection(Group, frozen=True, kw_only=True):
    """The toy dialect: toy.example/gpu and toy.example/gib."""

    resources: Annotated[ToyResources, doc("Names of the resources by which containers request GPUs.")] = ToyResources()
    memory_unit_mib: Annotated[
        MemoryUnit, doc("Memory that one unit of the memory resource stands for.", unit="MiB", reason="Toys count GiB.")
    ] = 1024
    halves: Annotated[
        Switch, doc("Whether a request without memory means half a GPU, not a whole one.", reason="Toys are small.")
    ] = True
