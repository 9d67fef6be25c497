"""The values of 4paradigm's chart, turned into HAMi's keys.

Installations that were set up with `--set devicePlugin.deviceMemoryScaling=3.0` keep their values file. A setting that
is given in both spellings with different values is refused.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Struct, UnsetType

from lamina.core.field_types import Labels, Mebibytes, MigStrategy, Name, Percent, Scaling, Slots, must_be
from lamina.dialects.volcano.dialect import SCHEDULE_POLICY
from lamina.errors import BadInput

TextSwitch = Annotated[Literal["true", "false"] | bool, must_be('"true" or "false"')]


class DevicePlugin(Struct, frozen=True, kw_only=True):
    """`devicePlugin:` of the chart, as far as it concerns GPUs."""

    deviceSplitCount: Slots | UnsetType = UNSET
    deviceMemoryScaling: Scaling | UnsetType = UNSET
    deviceCoreScaling: Scaling | UnsetType = UNSET
    migStrategy: MigStrategy | UnsetType = UNSET
    disablecorelimit: TextSwitch | UnsetType = UNSET
    runtimeClassName: Name | UnsetType = UNSET
    nvidianodeSelector: Labels | UnsetType = UNSET


class SchedulerSection(Struct, frozen=True, kw_only=True):
    """`scheduler:` of the chart, as far as it concerns GPUs."""

    defaultMem: Mebibytes | UnsetType = UNSET
    defaultCores: Percent | UnsetType = UNSET


HAMI_KEYS = {
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
"""HAMi's key for each value of the chart."""
NODE_SELECTOR = "devicePlugin.nvidianodeSelector"
_CHART_KEYS = {*(path.partition(".")[0] for path in (*HAMI_KEYS, NODE_SELECTOR)), SCHEDULE_POLICY}


def in_hami_keys(document: Mapping[str, Any], where: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A checked document with the chart's values moved to `hami`, and the labels of nodes in the chart's values.

    Raises BadInput on a conflict.
    """
    hami = dict(document.get("hami") or {})
    for path, key in HAMI_KEYS.items():
        value = _value_at(document, path)
        if value is UNSET:
            continue
        if key == "disableCoreLimit":
            value = value in ("true", True)
        _set(hami, key, value, where, f"hami.{key}", path)
    if SCHEDULE_POLICY in document:
        for key in ("nodeSchedulerPolicy", "gpuSchedulerPolicy"):
            _set(hami, key, document[SCHEDULE_POLICY], where, f"hami.{key}", SCHEDULE_POLICY)
    merged = {key: value for key, value in document.items() if key not in _CHART_KEYS}
    labels = _value_at(document, NODE_SELECTOR)
    return merged | {"hami": hami}, {} if labels is UNSET else labels


def _set(section: dict[str, Any], key: str, value: Any, where: str, ours: str, theirs: str) -> None:
    if key in section and section[key] != value:
        raise BadInput(
            f"{where}: {ours} and {theirs} set the same, but to {section[key]!r} and {value!r}; keep one of them"
        )
    section[key] = value


def _value_at(document: Mapping[str, Any], path: str) -> Any:
    value: Any = document
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return UNSET
        value = value[key]
    return value
