"""Values of the charts that Lamina takes the place of, and what takes the place of each value.

Source: the charts of 4paradigm's vGPU scheduler, HAMi and NVIDIA's device plugin, whose documents print commands such
as `helm install --set devicePlugin.deviceSplitCount=10`. `lamina install` refuses them with these answers. A file of
values is converted: those that are keys of the configuration are kept, and the answers to the others become notes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.configuration.importers.unversioned import CHART
from lamina.dialects.volcano.dialect import SCHEDULE_POLICY
from lamina.errors import BadInput

_CONFIGURATION = "set config.{}"
_OF_CONFIGURATION = tuple(
    f"{section}.{key.theirs}".lstrip(".")
    for section, keys in CHART.items()
    for key in keys
    if key.theirs != SCHEDULE_POLICY
)
"""These are keys of the configuration too."""
_ELSEWHERE = "devices that are not NVIDIA's; Lamina leaves them alone"
REPLACED: dict[str, str] = {
    **{path: _CONFIGURATION.format(path) for path in _OF_CONFIGURATION},
    "scheduler.kubeScheduler.imageTag": "set scheduler.image.tag",
    "scheduler.kubeScheduler.image": "set scheduler.image.repository",
    "scheduler.kubeScheduler": "set scheduler.image.repository and scheduler.image.tag",
    "scheduler.extender": "the controller answers as the extender, and image.repository and image.tag name its image",
    "devicePlugin.pluginPath": "set agent.kubeletDir",
    "devicePlugin": "the agent is the device plugin: set values of agent, or keys of config",
    "config.map": "put the files in config.nativeDevices.configs, or name a ConfigMap in "
    "config.nativeDevices.configMap.name",
    "config.name": "set config.nativeDevices.configMap.name and agent.nvidiaNamespace",
    "config.default": "set config.nativeDevices.default",
    "config.fallbackStrategies": "set config.nativeDevices.fallbacks",
    "migStrategy": "set config.mig.strategy",
    "gfd": "agents write the labels of GPU feature discovery themselves; config.compatibility.labels turns them off",
    "nfd": "agents choose nodes by agent.nodeSelectorTerms, so node feature discovery is not needed",
    "nvidiaDriverRoot": "set agent.driverDir",
    "deviceListStrategy": "agents hand out devices by CDI alone",
    "deviceIDStrategy": "agents name devices by UUID alone",
    "failOnInitError": "agents on nodes without a driver wait for one",
    "runtimeClassName": "set config.admission.runtimeClassName for pods that request GPUs",
    "scheduler.patch": "admission makes its certificate itself",
    "scheduler.customWebhook": "admission registers its own webhook",
    "scheduler.service": "Lamina's Services have fixed ports",
    "scheduler.podAnnotations": "pods of Lamina have no values for annotations",
    "podSecurityPolicy": "Kubernetes has none since 1.25; see docs/how-to/install.md for Pod Security",
    "imagePullSecrets": "set image.pullSecrets",
    "version": "set image.tag",
    "nameOverride": "Lamina's objects have fixed names",
    "fullnameOverride": "Lamina's objects have fixed names",
    "global": "Lamina's objects have no values for labels and annotations",
    **dict.fromkeys(("mluResourceName", "mluResourceMem"), _ELSEWHERE),
    **dict.fromkeys(("dcuResourceName", "dcuResourceMem", "dcuResourceCores"), _ELSEWHERE),
}
"""By the path of the value, the more specific before the less."""


SAME_NAME: dict[str, str] = {
    f"scheduler.{key}": f"set scheduler.{key} when installing" for key in ("tolerations", "nodeSelector")
}
"""Values that the chart of Lamina has too, so only a file of values is answered about them."""


_ROWS = REPLACED | SAME_NAME
_SECTIONS = {row.partition(".")[0] for row in _ROWS if "." in row}


def is_meant(document: Mapping[str, Any]) -> bool:
    """Whether a document has values besides keys of the configuration."""
    return any(_row(section, key) for section, key, _ in _values(document))


def read(document: Mapping[str, Any], name: str, where: str) -> tuple[dict[str, Any], list[str]]:
    """The keys of the configuration, and notes about the other values. Those without an answer stay, to be refused."""
    kept: dict[str, Any] = {}
    notes: dict[str, None] = {}
    for section, key, value in _values(document):
        if row := _row(section, key):
            notes[f"{row}: {_ROWS[row]}"] = None
        else:
            (kept.setdefault(section, {}) if section else kept)[key] = value
    return kept, list(notes)


def _values(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The section, the key in it, and the value. Values outside of these sections have none."""
    for key, value in document.items():
        if key in _SECTIONS and isinstance(value, dict):
            yield from ((key, inner, found) for inner, found in value.items())
        else:
            yield "", key, value


def _row(section: str, key: str) -> str:
    """The row that answers a value, empty for a key of the configuration and for a value without an answer."""
    path = f"{section}.{key}" if section else key
    if path in _OF_CONFIGURATION:
        return ""
    return next((row for row in (path, section) if row in _ROWS), "")


def refuse_values_of_others(document: Mapping[str, Any]) -> None:
    """Raises BadInput for a value of another chart, with what to do instead."""
    for path, instead in REPLACED.items():
        if _has(document, path):
            raise BadInput(f"the values: {path} is a value of another chart; {instead}")


def _has(document: Any, path: str) -> bool:
    for key in path.split("."):
        if not isinstance(document, dict) or key not in document:
            return False
        document = document[key]
    return True
