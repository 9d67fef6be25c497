"""Volcano's keys: the section `volcano`, which is the device configuration of Volcano's vGPU plugin.

Volcano's MIG geometries are HAMi's with a name for each layout.
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from lamina.configuration.importers.hami import Layout, check_amounts, mig_rule
from lamina.core.device_fields import AllowedInstances
from lamina.core.field_types import MemoryUnit, Models, ResourceName, must_be
from lamina.dialects.volcano.section import VolcanoResources, VolcanoSection


class NamedLayout(Struct, frozen=True, kw_only=True):
    """A layout with a name."""

    group: str = ""
    geometries: Annotated[Layout, Meta(min_length=1), must_be("a list of profiles with at least one entry")]


class VolcanoGeometry(Struct, frozen=True, kw_only=True, rename="camel"):
    """The layouts that models may have."""

    models: Models
    allowed_geometries: Annotated[
        tuple[NamedLayout, ...], Meta(min_length=1), must_be("a list of groups with geometries, at least one")
    ]


class Volcano(Struct, frozen=True, kw_only=True, rename="camel"):
    """Volcano's resource names, with Volcano's defaults."""

    resource_count_name: ResourceName = "volcano.sh/vgpu-number"
    """Is `dialects.volcano.resources.count`."""
    resource_memory_name: ResourceName = "volcano.sh/vgpu-memory"
    """Is `dialects.volcano.resources.memory`."""
    resource_memory_percentage_name: ResourceName = "volcano.sh/vgpu-memory-percentage"
    """Is `dialects.volcano.resources.memoryPercentage`."""
    resource_core_name: ResourceName = "volcano.sh/vgpu-cores"
    """Is `dialects.volcano.resources.cores`."""
    gpu_memory_factor: MemoryUnit = field(default=1, name="gpuMemoryFactor")
    """Is `dialects.volcano.memoryUnitMiB`."""
    known_mig_geometries: Annotated[
        tuple[VolcanoGeometry, ...], must_be("a list of entries with models and allowedGeometries, each a named group")
    ] = ()
    """Rules with `layouts` in `mig.rules`."""


def check(volcano: Volcano, where: str) -> None:
    """Refuse a profile with more memory than its name says."""
    check_amounts(
        (
            (geometry.models, (group.geometries for group in geometry.allowed_geometries))
            for geometry in volcano.known_mig_geometries
        ),
        where,
    )


def dialect(volcano: Volcano) -> VolcanoSection:
    """The resource names."""
    return VolcanoSection(
        resources=VolcanoResources(
            count=volcano.resource_count_name,
            memory=volcano.resource_memory_name,
            memory_percentage=volcano.resource_memory_percentage_name,
            cores=volcano.resource_core_name,
        ),
        memory_unit_mib=volcano.gpu_memory_factor,
    )


def layout_rules(volcano: Volcano) -> tuple[AllowedInstances, ...]:
    """The rules that `knownMigGeometries` stands for."""
    return tuple(
        mig_rule(geometry.models, (group.geometries for group in geometry.allowed_geometries))
        for geometry in volcano.known_mig_geometries
    )
