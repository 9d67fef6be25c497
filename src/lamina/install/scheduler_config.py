"""kube-scheduler's configuration with Lamina's profiles and extender, in the format that its version reads."""

from typing import Any, NamedTuple

from lamina.configuration import Config
from lamina.controller.extender.client_certificates import AUTHORITY, CERTIFICATE, KEY
from lamina.controller.extender.issued import SERVER_NAME
from lamina.dialects import resource_names, scheduler_names
from lamina.install.names import NAMESPACE
from lamina.install.rights import SCHEDULER_LEASE
from lamina.install.terms import Version

_FORMATS = (((1, 25), "v1"), ((1, 23), "v1beta3"), ((1, 22), "v1beta2"), ((1, 19), "v1beta1"))
"""The first version of kube-scheduler that reads each format."""
EXTENDER_URL = f"https://{SERVER_NAME}:8445"
EXTENDER_CERTIFICATES = "/etc/lamina-extender-tls"
"""The directory of kube-scheduler's client certificate."""
_DEFAULT_SCHEDULER = "default-scheduler"
BIND_S = 30
"""Longer than the 25 seconds that a bind may take."""


class ExtenderAccess(NamedTuple):
    """How kube-scheduler reaches the extender. `tls` is the directory of its client certificate, for https."""

    url: str
    tls: str

    @property
    def is_plain(self) -> bool:
        """Whether this is plain HTTP, without a certificate."""
        return not self.url.startswith("https://")


def scheduler_config(config: Config, *, version: Version, access: ExtenderAccess, weight: int) -> dict[str, Any]:
    """The document. It never has a profile for the cluster's default scheduler."""
    version_format = next((name for since, name in _FORMATS if version[:2] >= since), _FORMATS[-1][1])
    names = [name for name in scheduler_names(config) if name != _DEFAULT_SCHEDULER]
    return {
        "apiVersion": f"kubescheduler.config.k8s.io/{version_format}",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": True,
            "resourceLock": "leases",
            "resourceName": SCHEDULER_LEASE,
            "resourceNamespace": NAMESPACE,
        },
        "profiles": [{"schedulerName": name} for name in names],
        "extenders": [extender(config, access=access, weight=weight)],
    }


def extender(config: Config, *, access: ExtenderAccess, weight: int) -> dict[str, Any]:
    """The extender, for pods that request one of the resources of the configuration."""
    return {
        "urlPrefix": access.url,
        **({} if access.is_plain else _tls(access.tls)),
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
            for names in resource_names(config)
            for name in names.all
        ],
    }


def _tls(directory: str) -> dict[str, Any]:
    files = {"caFile": AUTHORITY, "certFile": CERTIFICATE, "keyFile": KEY}
    # The certificate has this name, whatever the address is by which the extender is reached.
    names = {"serverName": SERVER_NAME} | {key: f"{directory}/{file}" for key, file in files.items()}
    return {"enableHTTPS": True, "tlsConfig": names}
