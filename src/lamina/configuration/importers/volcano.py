"""Volcano's keys: the section `volcano`, which is the device configuration of Volcano's vGPU plugin.

Volcano's MIG geometries are HAMi's with a name for each layout. What the plugin does to GPUs it does as HAMi's, by keys
of the same names; what a pod gets that does not ask for an amount is fixed in Volcano's dialect.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from lamina.configuration.form import form
from lamina.configuration.importers import hami
from lamina.configuration.importers.hami import Layout, mig_rule
from lamina.configuration.importers.tables import Key, section
from lamina.core.field_types import Count, Mebibytes, Models, Percent, must_be


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


Geometries = Annotated[
    tuple[VolcanoGeometry, ...],
    must_be("a list of entries with models and allowedGeometries, each a named group"),
]


def _layout_rules(geometries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        mig_rule(each["models"], [group["geometries"] for group in each["allowedGeometries"]]) for each in geometries
    ]


_AS_HAMI = ("overwriteEnv", "deviceSplitCount", "deviceMemoryScaling", "deviceCoreScaling", "disableCoreLimit")
KEYS = (
    Key("resourceCountName", "dialects.volcano.resources.count"),
    Key("resourceMemoryName", "dialects.volcano.resources.memory"),
    Key("resourceMemoryPercentageName", "dialects.volcano.resources.memoryPercentage"),
    Key("resourceCoreName", "dialects.volcano.resources.cores"),
    Key("gpuMemoryFactor", "dialects.volcano.memoryUnitMiB"),
    *(key for key in hami.KEYS if key.theirs in _AS_HAMI),
    Key("defaultMemory", "", Mebibytes, 0, meaning="Not supported; only 0 is accepted, all memory of the GPU."),
    Key("defaultCores", "", Percent, 0, meaning="Not supported; only 0 is accepted, time that is left."),
    Key("defaultGPUNum", "", Count, 1, meaning="Not supported; only 1 is accepted."),
    Key("knownMigGeometries", "mig.rules", Geometries, (), _layout_rules, "Rules with `layouts` in `mig.rules`."),
)
Volcano = section(
    "Volcano", "Volcano's settings of NVIDIA's devices, with Volcano's defaults.", KEYS, form().configuration
)
