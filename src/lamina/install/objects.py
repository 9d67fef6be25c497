"""All objects of an installation, in the order in which they are to be made."""

from typing import Any

from lamina.control import crds
from lamina.dialects.config import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.install.accounts import accounts
from lamina.install.agent import agent
from lamina.install.control import control
from lamina.install.names import NAMESPACE, labels, meta
from lamina.install.network import network
from lamina.install.policies import policies
from lamina.install.scheduler import scheduler
from lamina.install.terms import Value, Yaml


def namespace() -> dict[str, Any]:
    """Ours. The agents mount folders of the node, which the stricter standards for pods do not allow."""
    security = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": labels() | security},
    }


def definitions() -> list[dict[str, Any]]:
    """Our kinds, which the control part keeps up to date."""
    return [each | {"metadata": each["metadata"] | {"labels": labels()}} for each in crds.definitions()]


def objects() -> list[Any]:
    """Everything else."""
    return [
        _critical_pods(),
        *accounts(),
        *policies(),
        _configuration(),
        *network(),
        *control(),
        *scheduler(),
        *agent(),
    ]


def _configuration() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta(CONFIG_MAP),
        "data": {CONFIG_MAP_KEY: Yaml(Value("config"))},
    }


def _critical_pods() -> dict[str, Any]:
    """Some clusters admit pods of the system's priority classes only where a quota names them."""
    classes = ["system-node-critical", "system-cluster-critical"]
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": meta("lamina-critical-pods"),
        "spec": {
            "hard": {"pods": "100k"},
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": classes}]
            },
        },
    }
