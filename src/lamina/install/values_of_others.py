"""Values of the charts that Lamina takes the place of, and what takes the place of each value.

Source: the charts of 4paradigm's vGPU scheduler, HAMi and NVIDIA's device plugin, whose documents print commands such
as `helm install --set devicePlugin.deviceSplitCount=10`.
"""

from collections.abc import Mapping
from typing import Any

from lamina.errors import BadInput

_CONFIGURATION = "set config.{}"
_OF_CONFIGURATION = (
    *("resourceName", "resourceMem", "resourceMemPercentage", "resourceCores", "resourcePriority", "schedulerName"),
    *("scheduler.defaultMem", "scheduler.defaultCores"),
    *("devicePlugin.deviceSplitCount", "devicePlugin.deviceMemoryScaling", "devicePlugin.deviceCoreScaling"),
    *("devicePlugin.migStrategy", "devicePlugin.disablecorelimit", "devicePlugin.runtimeClassName"),
    "devicePlugin.nvidianodeSelector",
)
"""These are keys of the configuration too."""
REPLACED: Mapping[str, str] = {
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
}
"""By the path of the value, the more specific before the less."""


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
