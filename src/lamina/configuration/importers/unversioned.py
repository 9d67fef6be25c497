"""A document without apiVersion: keys of other systems, next to which Lamina's own may stand.

hami:                      # HAMi's device configuration, see `hami.KEYS`
  deviceSplitCount: 10
nodeconfig:                # HAMi's settings of single nodes
  - {name: node-1, devicememoryscaling: 3.0}
volcano:                   # Volcano's device configuration, see `volcano.KEYS`
  gpuMemoryFactor: 1
devicePlugin: {...}        # values of 4paradigm's chart, see `CHART`
sharing: {...}             # any group of Lamina's own form
"""

from collections.abc import Mapping
from types import GenericAlias
from typing import Annotated, Any, Literal

import msgspec

from lamina.configuration import strict
from lamina.configuration.checks import check_names, check_nodes
from lamina.configuration.form import form
from lamina.configuration.importers import hami, volcano
from lamina.configuration.importers.tables import Key, converted, put, section
from lamina.configuration.yaml_documents import shown
from lamina.core.component_names import API_VERSION
from lamina.core.config import KIND, Config
from lamina.core.field_types import Labels, must_be
from lamina.dialects.volcano.dialect import SCHEDULE_POLICY
from lamina.errors import BadInput

_HEADER = {"apiVersion": API_VERSION, "kind": KIND}
_PUBLISHED = {"version", "actions", "tiers", "nvidia"}
"""Keys of files that `published` converts."""
_SECTIONS = {"hami": hami.KEYS, "volcano": volcano.KEYS}
TextSwitch = Annotated[Literal["true", "false"] | bool, must_be('"true" or "false"')]

CHART = {
    "": (
        Key("resourceName", "hami.resourceCountName"),
        Key("resourceMem", "hami.resourceMemoryName"),
        Key("resourceMemPercentage", "hami.resourceMemoryPercentageName"),
        Key("resourceCores", "hami.resourceCoreName"),
        Key("resourcePriority", "hami.resourcePriorityName"),
        Key("schedulerName", "hami.schedulerName"),
        Key(SCHEDULE_POLICY, "hami.nodeSchedulerPolicy"),
        Key(SCHEDULE_POLICY, "hami.gpuSchedulerPolicy"),
    ),
    "scheduler": (
        Key("defaultMem", "hami.defaultMemory"),
        Key("defaultCores", "hami.defaultCores"),
    ),
    "devicePlugin": (
        Key("deviceSplitCount", "hami.deviceSplitCount"),
        Key("deviceMemoryScaling", "hami.deviceMemoryScaling"),
        Key("deviceCoreScaling", "hami.deviceCoreScaling"),
        Key("migStrategy", "hami.migStrategy"),
        Key("disablecorelimit", "hami.disableCoreLimit", TextSwitch, False, ("true", True).__contains__),
        Key("runtimeClassName", "hami.runtimeClassName"),
        Key("nvidianodeSelector", "nodes.selector", Labels, {}),
    ),
}
"""The values of 4paradigm's chart, in terms of HAMi's keys, by their section. Installations that were set up with
`--set devicePlugin.deviceMemoryScaling=3.0` keep their values file."""

Document = section(
    "Document",
    "The keys of other systems, without the values of the chart.",
    (
        Key("hami", "", hami.Hami, hami.Hami(), meaning="HAMi's settings."),
        Key("volcano", "", volcano.Volcano, volcano.Volcano(), meaning="Volcano's settings."),
        Key(
            "nodeconfig",
            kind=GenericAlias(list, hami.NodeConfig),
            default=[],
            meaning="Settings of single nodes, see below.",
        ),
    ),
    form().configuration,
)
Scheduler = section("Scheduler", "`scheduler:` of the chart, as far as it concerns GPUs.", CHART["scheduler"], Document)
DevicePlugin = section(
    "DevicePlugin", "`devicePlugin:` of the chart, as far as it concerns GPUs.", CHART["devicePlugin"], Document
)
DocumentWithChart = section(
    "DocumentWithChart",
    "The keys of other systems as they may be written; only used to check keys, types and ranges.",
    (
        *CHART[""],
        Key("scheduler", "", Scheduler | None, None, meaning="The chart's defaults of requests."),
        Key("devicePlugin", "", DevicePlugin | None, None, meaning="The chart's settings of devices."),
    ),
    Document,
    base=Document,
)


def read(document: Mapping[str, Any], where: str) -> Config:
    """The configuration that a document stands for. Raises BadInput; nothing is applied in part."""
    kind = form().configuration
    for key in _PUBLISHED & document.keys():
        raise BadInput(
            f"{where}: unknown key {key}; if this is a file of another system, convert it with `lamina config convert`"
        )
    strict.refuse_unknown_keys(document, (DocumentWithChart, kind), where)
    theirs = strict.known(strict.without_empty_keys(document, DocumentWithChart), DocumentWithChart)
    strict.decode(theirs, DocumentWithChart, where)
    ours = strict.known(strict.without_empty_keys(document, kind), kind)
    strict.decode(_HEADER | ours, kind, where)
    return strict.decode(_merged(_HEADER | _imported(theirs, where), ours, where), kind, where)


def _imported(theirs: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What a checked document says in other systems' keys, in our form."""
    ours = _in_hami_keys(theirs, where)
    written = strict.known(theirs, Document) | {"hami": ours.pop("hami")}
    _check(written, where)
    by: dict[str, tuple[str, Any]] = {}
    for name, keys in _SECTIONS.items():
        for key, value in converted(written.get(name, {}), keys, where, f"{name}."):
            other, otherwise = by.get(key.ours, (name, value))
            if other != name and otherwise != value and not isinstance(value, list):
                raise BadInput(_twice(where, f"{other}.{key.theirs}", f"{name}.{key.theirs}", otherwise, value))
            by[key.ours] = name, value
            put(ours, key.ours, value)
    ours.get("mig", {}).get("rules", []).sort(key=lambda rule: "profiles" in rule)  # the first rule for a model counts
    for number, node in enumerate(written.get("nodeconfig", [])):
        settings = converted(node, hami.NODE_KEYS, where, f"nodeconfig[{number}].")
        put(ours, "nodes.overrides", [{key.ours: value for key, value in settings}])
    return ours


def _in_hami_keys(theirs: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The section `hami` with the chart's values, and what the chart sets in our form. Raises BadInput."""
    moved = {"hami": dict(theirs.get("hami") or {})}
    for name, keys in CHART.items():
        written, path = (theirs.get(name) or {}, f"{name}.") if name else (theirs, "")
        for key, value in converted(written, keys, where, path):
            other = moved["hami"].get(key.ours.removeprefix("hami."), value)
            if other != value:
                raise BadInput(_twice(where, key.ours, f"{path}{key.theirs}", other, value))
            put(moved, key.ours, value)
    return moved


def _twice(where: str, one: str, other: str, first: Any, second: Any) -> str:
    return f"{where}: {one} and {other} set the same, but to {first!r} and {second!r}; keep one of them"


def _check(document: Mapping[str, Any], where: str) -> None:
    written = msgspec.to_builtins(strict.decode(document, Document, where))
    if written["hami"]["disableCoreLimit"] and written["hami"]["gpuCorePolicy"] == "force":
        raise BadInput(f"{where}: hami.gpuCorePolicy must not be force if hami.disableCoreLimit is true; keep one")
    resources = {
        f"{name}.{key}": value
        for name in _SECTIONS
        for key, value in written[name].items()
        if key.startswith("resource")
    }
    check_names(resources, where)
    check_nodes([node["name"] for node in written["nodeconfig"]], "nodeconfig", where)


def _merged(imported: Mapping[str, Any], ours: Mapping[str, Any], where: str, path: str = "") -> dict[str, Any]:
    """What is written in other systems' keys and in ours. Raises BadInput if both set the same, to different values."""
    merged = dict(imported)
    for key, value in ours.items():
        here, other = f"{path}{key}", imported.get(key)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            merged[key] = _merged(other, value, where, f"{here}.")
        elif key in imported and other != value:
            raise BadInput(
                f"{where}: {here} is {shown(value)}, and {shown(other)} by another system's key; keep one of them"
            )
        else:
            merged[key] = value
    return merged
