"""HAMi's keys: the section `hami`, which is HAMi's device configuration, and the list `nodeconfig` of its config.json.

Keys are spelled as HAMi spells them, so that an existing configuration can be copied. Every key takes effect or is
refused. Memory is in MiB, cores are percent of one GPU's time.

HAMi's MIG geometries are lists of profiles. A geometry is the most that a GPU has: only instances that pods request are
made. `core` and `memory` of a profile are given by the card, whatever is written; an impossible amount is refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from lamina.configuration.form import form
from lamina.configuration.importers.tables import Key, section
from lamina.core.config_fields import ExcludedGpus, NodeOverride
from lamina.core.field_types import LogLevel, MigProfile, Models, Switch, must_be
from lamina.errors import BadInput

LogLevelOrText = Annotated[
    LogLevel | Literal["0", "1", "2", "3", "4"],
    must_be("0 (errors), 1 (warnings), 2 or 3 (information) or 4 (debug)"),
]
CorePolicy = Annotated[Literal["default", "force", "disable"], must_be("default, force or disable")]
OperatingMode = Annotated[Literal["", "hami-core", "mps", "mig"], must_be("hami-core, mps or mig")]

_PROFILE_NAMES = {"7g.79gb": "7g.80gb"}
"""What HAMi and Volcano call the profile that is all of a card with 80 GB."""


class InstanceCount(Struct, frozen=True, kw_only=True):
    """A number of instances of one profile."""

    name: MigProfile
    count: Annotated[int, Meta(ge=1, le=8), must_be("an integer from 1 to 8")]
    memory: Annotated[int, Meta(ge=1), must_be("an integer from 1 (MiB)")] | None = None
    core: Annotated[int, Meta(ge=1, le=100), must_be("an integer from 1 to 100")] | None = None


Layout = tuple[InstanceCount, ...]


class HamiGeometry(Struct, frozen=True, kw_only=True, rename="camel"):
    """The layouts that models may have."""

    models: Models
    allowed_geometries: Annotated[
        tuple[Layout, ...], Meta(min_length=1), must_be("a list of lists of profiles with at least one entry")
    ]


class AllowedProfiles(Struct, frozen=True, kw_only=True):
    """The profiles that models may have, in any layout."""

    models: Models
    profiles: Annotated[
        tuple[MigProfile, ...], Meta(min_length=1), must_be("a list of profiles with at least one entry")
    ]


Geometries = Annotated[tuple[HamiGeometry, ...], must_be("a list of entries with models and allowedGeometries")]
Allowlist = Annotated[tuple[AllowedProfiles, ...], must_be("a list of entries with models and profiles")]


def mig_rule(models: Sequence[str], layouts: Iterable[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The rule that models may have one of these layouts. Raises BadInput for more memory than a profile has."""
    rule: dict[str, Any] = {"models": models, "layouts": []}
    for layout in layouts:
        for instances in layout:
            max_mib = int(re.findall(r"\d+", instances["name"])[1]) * 1024
            if (instances.get("memory") or 0) > max_mib:
                raise BadInput(
                    f"{', '.join(models)}: memory of {instances['name']} must be at most {max_mib}, "
                    f"got {instances['memory']}"
                )
        rule["layouts"].append([{"profile": _profile(each["name"]), "count": each["count"]} for each in layout])
    return rule


def _layout_rules(geometries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [mig_rule(each["models"], each["allowedGeometries"]) for each in geometries]


def _profile_rules(allowlist: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"models": each["models"], "profiles": [_profile(name) for name in each["profiles"]]} for each in allowlist]


def _profile(name: str) -> str:
    return _PROFILE_NAMES.get(name, name)


KEYS = (
    Key("resourceCountName", "dialects.hami.resources.count"),
    Key("resourceMemoryName", "dialects.hami.resources.memory"),
    Key("resourceMemoryPercentageName", "dialects.hami.resources.memoryPercentage"),
    Key("resourceCoreName", "dialects.hami.resources.cores"),
    Key("resourcePriorityName", "dialects.hami.resources.priority"),
    Key("overwriteEnv", "admission.hideGpus"),
    Key("defaultMemory", "dialects.hami.defaults.memoryMiB"),
    Key("defaultCores", "dialects.hami.defaults.cores"),
    Key("defaultGPUNum", "dialects.hami.defaults.count"),
    Key("memoryFactor", "dialects.hami.memoryUnitMiB"),
    Key("deviceSplitCount", "sharing.slots"),
    Key("deviceMemoryScaling", "sharing.memoryScaling"),
    Key("deviceCoreScaling", "sharing.computeScaling"),
    Key("preConfiguredDeviceMemory", "sharing.unreportedMemoryMiB"),
    Key(
        "enableNumaTopology",
        "",
        Switch,
        False,
        meaning="Not supported; only false is accepted. Use the annotation nvidia.com/numa-bind.",
    ),
    Key("migStrategy", "mig.strategy"),
    Key("libCudaLogLevel", "sharing.logLevel", LogLevelOrText, convert=int),
    Key(
        "gpuCorePolicy",
        "sharing.computePolicy",
        CorePolicy,
        "default",
        {"default": "weight", "force": "cap", "disable": "none"}.get,  # the default only limits under contention
        "Is `sharing.computePolicy`: default is weight, force is cap, disable is none.",
    ),
    Key(
        "disableCoreLimit",
        "sharing.computePolicy",
        Switch,
        False,
        {True: "none"}.get,
        "If true, `sharing.computePolicy` is none.",
    ),
    Key("runtimeClassName", "admission.runtimeClassName"),
    Key("schedulerName", "schedulers.assigned"),
    Key("nodeSchedulerPolicy", "placement.nodePolicy"),
    Key("gpuSchedulerPolicy", "placement.gpuPolicy"),
    Key("knownMigGeometries", "mig.rules", Geometries, (), _layout_rules, "Rules with `layouts` in `mig.rules`."),
    Key("migProfileAllowlist", "mig.rules", Allowlist, (), _profile_rules, "Rules with `profiles` in `mig.rules`."),
)
Hami = section("Hami", "HAMi's settings of NVIDIA's devices, with HAMi's defaults.", KEYS, form().configuration)

FILTER_KEYS = (Key("uuid", "uuids"), Key("index", "indices"))
FilterDevices = section(
    "FilterDevices",
    "GPUs of one node that are not offered, by UUID or by index.",
    FILTER_KEYS,
    ExcludedGpus,
    "nodes.overrides[].excludedGpus.",
)


def _excluded(written: Mapping[str, Any]) -> dict[str, Any]:
    return {key.ours: written[key.theirs] for key in FILTER_KEYS if key.theirs in written}


def _modes(operating_mode: str) -> list[str] | None:
    if not operating_mode:
        return None
    return ["quota" if operating_mode == "hami-core" else operating_mode]


NODE_KEYS = (
    Key("name", "name"),
    Key(
        "operatingmode",
        "modes",
        OperatingMode,
        "",
        _modes,
        "In `nodes.overrides[].modes`: hami-core is quota, mps is mps, mig is mig.",
    ),
    Key("devicesplitcount", "slots"),
    Key("devicememoryscaling", "memoryScaling"),
    Key("devicecorescaling", "computeScaling"),
    Key("preconfigureddevicememory", "unreportedMemoryMiB"),
    Key("enablenumatopology", "", Switch, False, meaning="Not supported; only false is accepted."),
    Key("libcudaloglevel", "logLevel", LogLevelOrText | None, convert=int),
    Key("migstrategy", "migStrategy"),
    Key("filterdevices", "excludedGpus", FilterDevices | None, None, _excluded),
    Key("enablegetpreferredallocation", "", Switch, False, meaning="Not supported; only false is accepted."),
)
NodeConfig = section(
    "NodeConfig",
    "Settings of one node, spelled as in HAMi's config.json. None leaves the cluster's setting.",
    NODE_KEYS,
    NodeOverride,
    "nodes.overrides[].",
)
