"""kube-scheduler's configuration with Lamina's profiles and extender, in the format that its version reads."""

from typing import Any, NamedTuple

from lamina.configuration import Config
from lamina.core.component_names import (
    AUTHORITY_FILE,
    CERTIFICATE_FILE,
    DEFAULT_NAMESPACE,
    FILTER_TO_BEST,
    KEY_FILE,
    PRIORITIZE_WITHOUT_GPUS,
    extender_name,
)
from lamina.dialects import DEFAULT_SCHEDULER, resource_names, scheduler_names
from lamina.install.versions import Version

_FORMATS = (((1, 25), "v1"), ((1, 23), "v1beta3"), ((1, 22), "v1beta2"), ((1, 19), "v1beta1"))
"""The first version of kube-scheduler that reads each format."""
EXTENDER_CERTIFICATES = "/etc/lamina-extender-tls"
"""The directory of kube-scheduler's client certificate."""
_LEASE = "lamina-scheduler"
BIND_S = 30
"""Longer than the 25 seconds that a bind may take."""
PRIORITIZE_S = 2
"""How long kube-scheduler waits for a preference among nodes for a pod that requests no GPU."""
DECIDING_WEIGHT = 10
"""From this weight on, a point of the extender is worth more than all scores of kube-scheduler that no pod asks for."""
_OVERRULING = ("NodeResourcesBalancedAllocation", "ImageLocality")
"""Scores that no pod asks for, and that are large enough to overrule the policy."""


def extender_url(namespace: str) -> str:
    """The URL of the controller's Service in Lamina's namespace."""
    return f"https://{extender_name(namespace)}:8445"


class ExtenderAccess(NamedTuple):
    """How kube-scheduler reaches the extender. `tls` is the directory of its client certificate, for https."""

    url: str
    tls: str
    namespace: str = DEFAULT_NAMESPACE
    """Of Lamina, and so of the name in the extender's certificate."""

    @property
    def is_plain(self) -> bool:
        """Whether this is plain HTTP, without a certificate."""
        return not self.url.startswith("https://")


def scheduler_config(
    config: Config, *, version: Version, access: ExtenderAccess, weight: int, pods_without_gpus: bool = True
) -> dict[str, Any]:
    """The document. It never has a profile for the cluster's default scheduler.

    With `pods_without_gpus`, Lamina also rates nodes for pods of these profiles that request no GPU.
    """
    version_format = next((name for since, name in _FORMATS if version[:2] >= since), _FORMATS[-1][1])
    names = [name for name in scheduler_names(config) if name != DEFAULT_SCHEDULER]
    return {
        "apiVersion": f"kubescheduler.config.k8s.io/{version_format}",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": True,
            "resourceLock": "leases",
            "resourceName": _LEASE,
            "resourceNamespace": access.namespace,
        },
        "profiles": [{"schedulerName": name, **_scoring(version)} for name in names],
        "extenders": [
            extender(config, access=access, weight=weight),
            *([_extender_for_pods_without_gpus(access, weight)] if pods_without_gpus else []),
        ],
    }


def _scoring(version: Version) -> dict[str, Any]:
    """What kube-scheduler's own scores leave to the policy.

    Scores that follow from what a pod asks for stay: node affinity, taints, affinity of pods, its own topology spread.
    So does the preference for nodes with free CPU and memory, which is less than one point of the extender.
    """
    disabled = [*_OVERRULING, *(["SelectorSpread"] if version[:2] < (1, 20) else [])]
    scoring: dict[str, Any] = {"plugins": {"score": {"disabled": [{"name": name} for name in disabled]}}}
    if version[:2] >= (1, 20):
        spread = {"defaultingType": "List", "defaultConstraints": []}
        scoring["pluginConfig"] = [{"name": "PodTopologySpread", "args": spread}]
    return scoring


def extender(config: Config, *, access: ExtenderAccess, weight: int) -> dict[str, Any]:
    """The extender, for pods that request one of the resources of the configuration."""
    return {
        **_reached(access),
        "filterVerb": FILTER_TO_BEST if weight >= DECIDING_WEIGHT else "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "weight": weight,
        "ignorable": False,
        "httpTimeout": f"{BIND_S}s",
        "managedResources": [
            {"name": name, "ignoredByScheduler": name in names.ignored_by_scheduler}
            for names in resource_names(config)
            for name in names.all
        ],
    }


def _extender_for_pods_without_gpus(access: ExtenderAccess, weight: int) -> dict[str, Any]:
    """It has no managed resources, so it is asked about all pods of the profiles; those with GPUs have no answer."""
    return {
        **_reached(access),
        "prioritizeVerb": PRIORITIZE_WITHOUT_GPUS,
        "weight": weight,
        "ignorable": True,
        "httpTimeout": f"{PRIORITIZE_S}s",
    }


def _reached(access: ExtenderAccess) -> dict[str, Any]:
    return {"urlPrefix": access.url, **({} if access.is_plain else _tls(access)), "nodeCacheCapable": True}


def _tls(access: ExtenderAccess) -> dict[str, Any]:
    files = {"caFile": AUTHORITY_FILE, "certFile": CERTIFICATE_FILE, "keyFile": KEY_FILE}
    # The certificate has this name, whatever the address is by which the extender is reached.
    names = {"serverName": extender_name(access.namespace)} | {
        key: f"{access.tls}/{file}" for key, file in files.items()
    }
    return {"enableHTTPS": True, "tlsConfig": names}
