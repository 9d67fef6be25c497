"""Values of the charts that Lamina takes the place of, and what takes the place of each value.

Source: the charts of 4paradigm's vGPU scheduler, HAMi and NVIDIA's device plugin, whose documents print commands such
as `helm install --set devicePlugin.deviceSplitCount=10`. `lamina install` refuses them with these answers, and
`chart_values` gives them when it converts a file of values.
"""

from collections.abc import Mapping
from typing import Any

from lamina.configuration.importers.unversioned import CHART
from lamina.core.component_names import documentation
from lamina.dialects.volcano.dialect import SCHEDULE_POLICY
from lamina.errors import BadInput

_CONFIGURATION = "set config.{}"
OF_CONFIGURATION = tuple(
    f"{section}.{key.theirs}".lstrip(".")
    for section, keys in CHART.items()
    for key in keys
    if key.theirs != SCHEDULE_POLICY
)
"""These are keys of the configuration too."""
_ELSEWHERE = "devices that are not NVIDIA's; Lamina leaves them alone"
REPLACED: dict[str, str] = {
    **{path: _CONFIGURATION.format(path) for path in OF_CONFIGURATION},
    "scheduler.kubeScheduler.imageTag": "set scheduler.image.tag",
    "scheduler.kubeScheduler.image": "set scheduler.image.repository",
    "scheduler.kubeScheduler": "set scheduler.image.repository and scheduler.image.tag",
    "scheduler.extender": "the controller answers as the extender, and image.repository and image.tag name its image",
    "devicePlugin.pluginPath": "set agent.kubeletDir",
    "devicePlugin": "the agent is the device plugin: set values of agent, or keys of config",
    "config.map": "put the files in config.nativeDevices.configs, as `lamina config convert FILE` prints them, or name "
    "a ConfigMap in config.nativeDevices.configMap.name",
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
    "podSecurityPolicy": f"Kubernetes has none since 1.25; see {documentation('how-to/install.md')} for Pod Security",
    "imagePullSecrets": "set image.pullSecrets",
    "version": "set image.tag",
    "nameOverride": "Lamina's objects have fixed names",
    "fullnameOverride": "Lamina's objects have fixed names",
    "global": "Lamina's objects have no values for labels and annotations",
    **{f"{kind}Resource{what}": _ELSEWHERE for kind in ("mlu", "dcu", "hcu") for what in ("Name", "Mem", "Cores")},
}
"""By the path of the value, the more specific before the less."""


_OWN = f"Lamina's installation has values of its own; see {documentation('reference/chart-values.md')}"
_AGENT = "the agent is the device plugin; set values of agent when installing"
_BY_NAME = f"the namespaces and labels that admission leaves alone are in {documentation('how-to/coexist.md')}"
CONVERTED: dict[str, str] = {
    **{
        f"scheduler.{key}": f"set scheduler.{key} when installing"
        for key in ("tolerations", "nodeSelector", "replicas", "resources", "podAnnotations")
    },
    **{
        f"scheduler.{key}": _OWN
        for key in (
            *("nodeName", "nodeLabelSelector", "metricsBindAddress", "kubeQPS", "kubeBurst", "kubeTimeout"),
            *("nodeLockRetryTimeout", "nodeLockExpire", "extenderHTTPTimeout", "livenessProbe", "leaderElect"),
            *("podDisruptionBudget", "certManager", "networkPolicy", "serviceAccountName", "serviceMonitor"),
            *("servicemonitor", "mutatingWebhookConfiguration", "webhook", "preExtenders", "postExtenders"),
            *("maxCachePod", "metricsBindPort", "schedulerLogMaxCachePod", "schedulerLogServerBindAddress"),
        )
    },
    "scheduler.forceOverwriteDefaultScheduler": "set config.schedulers",
    "scheduler.admissionWebhook": _BY_NAME,
    **{
        f"devicePlugin.{key}": _AGENT
        for key in (
            *("enabled", "image", "imagePullPolicy", "monitor", "monitorimage", "monitorctrPath", "extraArgs"),
            *("extraEnvs", "service", "libPath", "podAnnotations", "tolerations", "resources", "securityContext"),
            *("updateStrategy", "hostPID", "hostPIDBroker", "hostNetwork", "gpuOperatorToolkitReady", "numaRefit"),
            *("nodeConfiguration", "createRuntimeClass", "nvidiaHookPath", "nvidiaDriverRoot", "autoValidatorDriver"),
            *("compatWithCPUManager", "deviceDiscoveryStrategy"),
            *("initContainerSecurityContext", "kubeletRootDir", "nodeSelector", "serviceMonitor", "sockPath"),
            *("vgpuMonitor", "preConfiguredDeviceType"),
        )
    },
    **{
        f"devicePlugin.{key}": "agents hand out devices by CDI alone"
        for key in ("deviceListStrategy", "passDeviceSpecsEnabled")
    },
    **{
        f"devicePlugin.{key}": _ELSEWHERE
        for key in ("hygonimage", "hygondriver", "mlunodeSelector", "hygonnodeSelector")
    },
    **dict.fromkeys(
        (
            *("namespace", "namespaceOverride", "image", "resources", "nodeSelector", "affinity", "tolerations"),
            *("podAnnotations", "podSecurityContext", "securityContext", "priorityClassName", "updateStrategy"),
            *("platform", "openshift", "selinux", "rbac", "daemonset", "hostPaths", "logging", "monitor", "cdi", "mps"),
            *("prometheus", "legacyMetrics", "mockDevicePlugin", "compatWithCPUManager", "allowDefaultNamespace"),
            *("selectorLabelsOverride", "deviceDiscoveryStrategy", "nodeConfig", "deviceConfig", "config"),
            *("additionalLabels", "componentSelectorLabels", "env"),
            *("configManager", "deviceFilter", "devicePluginMps", "dra", "gfdMode", "hami-dra", "hami-dra-webhook"),
            *("hostDir", "kubedir", "legacyDaemonsetAPI", "libcudaLogVerbosity", "logVerbosity", "mcpServer"),
            *("nvidiaDriverCapabilities", "nvmlMock", "podLabels", "preferredAllocationStrategy", "resourceConfig"),
            *("resourceNamePrefix", "restartOnDeviceUnhealthy", "selectorLabelsOverrideMPSControlDaemon"),
            *("serviceAccount", "sysfsHostPath", "sysfsRoot", "visibleDevices"),
        ),
        _OWN,
    ),
    **{
        f"{section}{key}": "for native devices alone, by flags of a file in nativeDevices.configs"
        for section in ("", "devicePlugin.")
        for key in ("gdrcopyEnabled", "gdsEnabled", "mofedEnabled")
    },
    "devices": _ELSEWHERE,
}
"""Answers about a file of values alone, because the chart of Lamina has some of these values too."""


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
