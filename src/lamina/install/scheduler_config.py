"""kube-scheduler's configuration with our profiles and extender, in the form that its version reads."""

from typing import Any

from lamina.dialects import schedulers, vocabularies
from lamina.dialects.config import Config
from lamina.install.names import NAMESPACE
from lamina.install.rights import SCHEDULER_LEASE
from lamina.install.terms import Version

_FORMS = (((1, 25), "v1"), ((1, 23), "v1beta3"), ((1, 22), "v1beta2"), ((1, 19), "v1beta1"))
"""From which version on kube-scheduler reads which form."""
_CLUSTERS_OWN = "default-scheduler"
BIND_S = 30
"""More than the 25 seconds that a bind may take."""


def scheduler_config(config: Config, *, version: Version, extender_url: str, weight: int) -> dict[str, Any]:
    """The document. The cluster's own scheduler keeps its name, whatever the configuration says."""
    form = next((form for since, form in _FORMS if version[:2] >= since), _FORMS[-1][1])
    names = [name for name in schedulers(config) if name != _CLUSTERS_OWN]
    return {
        "apiVersion": f"kubescheduler.config.k8s.io/{form}",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": True,
            "resourceLock": "leases",
            "resourceName": SCHEDULER_LEASE,
            "resourceNamespace": NAMESPACE,
        },
        "profiles": [{"schedulerName": name} for name in names],
        "extenders": [extender(config, url=extender_url, weight=weight)],
    }


def extender(config: Config, *, url: str, weight: int) -> dict[str, Any]:
    """Our extender, for pods that name one of the resources of the configuration."""
    return {
        "urlPrefix": url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "weight": weight,
        "nodeCacheCapable": True,
        "ignorable": False,
        "httpTimeout": f"{BIND_S}s",
        "managedResources": [
            {"name": name, "ignoredByScheduler": name in names.ignored_by_scheduler}
            for names in vocabularies(config)
            for name in names.all
        ],
    }
