"""The spellings of the 4paradigm chart's values, accepted as they are and turned into HAMi's keys.

Installations that were set up with `--set devicePlugin.deviceMemoryScaling=3.0` keep their values file. The same
setting given in both spellings with different values is refused, because either reading would surprise somebody.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lamina.dialects.sections import Labels, Mebibytes, MigStrategy, Name, Percent, Scaling, SplitCount
from lamina.errors import BadInput

TextSwitch = Annotated[Literal["true", "false"] | bool, Meta(description='"true" or "false"')]


class DevicePlugin(Struct, frozen=True, kw_only=True):
    """`devicePlugin:` of the chart, as far as it concerns GPUs."""

    deviceSplitCount: SplitCount | UnsetType = UNSET
    deviceMemoryScaling: Scaling | UnsetType = UNSET
    deviceCoreScaling: Scaling | UnsetType = UNSET
    migStrategy: MigStrategy | UnsetType = UNSET
    disablecorelimit: TextSwitch | UnsetType = UNSET
    runtimeClassName: Name | UnsetType = UNSET
    nvidianodeSelector: Labels | UnsetType = UNSET


class Scheduler(Struct, frozen=True, kw_only=True):
    """`scheduler:` of the chart, as far as it concerns GPUs."""

    defaultMem: Mebibytes | UnsetType = UNSET
    defaultCores: Percent | UnsetType = UNSET


SCHEDULE_POLICY = "deviceshare.SchedulePolicy"
"""Volcano's one name for the policy over nodes and over GPUs."""

_KEPT = (
    "volcano", "nvidia", "nodeconfig", "nodeSelector", "otherResources", "schedulers", "enforcer", "lowPriorityPercent",
    "metrics", "node", "health", "enabled",
)  # fmt: skip
"""Keys that the chart does not have."""

_TO_HAMI = {
    "resourceName": "resourceCountName",
    "resourceMem": "resourceMemoryName",
    "resourceMemPercentage": "resourceMemoryPercentageName",
    "resourceCores": "resourceCoreName",
    "resourcePriority": "resourcePriorityName",
    "schedulerName": "schedulerName",
    "scheduler.defaultMem": "defaultMemory",
    "scheduler.defaultCores": "defaultCores",
    "devicePlugin.deviceSplitCount": "deviceSplitCount",
    "devicePlugin.deviceMemoryScaling": "deviceMemoryScaling",
    "devicePlugin.deviceCoreScaling": "deviceCoreScaling",
    "devicePlugin.migStrategy": "migStrategy",
    "devicePlugin.disablecorelimit": "disableCoreLimit",
    "devicePlugin.runtimeClassName": "runtimeClassName",
}


def in_hami_keys(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A checked document with the chart's spellings moved to `hami` and `nodeSelector`. Raises BadInput on a clash."""
    hami = dict(document.get("hami") or {})
    for spelled, key in _TO_HAMI.items():
        value = _at(document, spelled)
        if value is UNSET:
            continue
        if key == "disableCoreLimit":
            value = value in ("true", True)
        _put(hami, key, value, where, f"hami.{key}", spelled)
    if SCHEDULE_POLICY in document:
        for key in ("nodeSchedulerPolicy", "gpuSchedulerPolicy"):
            _put(hami, key, document[SCHEDULE_POLICY], where, f"hami.{key}", SCHEDULE_POLICY)
    merged = {key: value for key, value in document.items() if key in _KEPT}
    labels = _at(document, "devicePlugin.nvidianodeSelector")
    if labels is not UNSET:
        _put(merged, "nodeSelector", labels, where, "nodeSelector", "devicePlugin.nvidianodeSelector")
    return merged | {"hami": hami}


def _put(into: dict[str, Any], key: str, value: Any, where: str, ours: str, theirs: str) -> None:
    if key in into and into[key] != value:
        raise BadInput(f"{where}: {ours} is {into[key]!r} and {theirs}, which sets the same, is {value!r}; keep one")
    into[key] = value


def _at(document: Mapping[str, Any], dotted: str) -> Any:
    found: Any = document
    for key in dotted.split("."):
        if not isinstance(found, Mapping) or key not in found:
            return UNSET
        found = found[key]
    return found
