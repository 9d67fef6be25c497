"""All objects of an installation, in the order of their creation."""

from collections.abc import Mapping
from typing import Any

from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.core.component_names import NAMESPACE
from lamina.core.definitions import custom_resource_definitions
from lamina.install.accounts import accounts
from lamina.install.agent import agent
from lamina.install.controller import controller
from lamina.install.dashboard import dashboard
from lamina.install.mps import mps
from lamina.install.names import labels, meta
from lamina.install.network import network
from lamina.install.policies import policies
from lamina.install.scheduler import scheduler
from lamina.install.telemetry.objects import telemetry
from lamina.install.terms import Value, Yaml


def namespace() -> dict[str, Any]:
    """The namespace of Lamina. Agents mount host directories, which needs the privileged pod security standard."""
    security = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": labels() | security},
    }


def definitions() -> list[dict[str, Any]]:
    """The CRDs, which the controller keeps up to date."""
    return [crd | {"metadata": crd["metadata"] | {"labels": labels()}} for crd in custom_resource_definitions()]


def objects() -> list[Any]:
    """All objects but the namespace and the CRDs."""
    return [
        _critical_pods(),
        *accounts(),
        *policies(),
        _configuration(),
        *network(),
        *controller(),
        *scheduler(),
        *agent(),
        *mps(),
        *dashboard(),
        *telemetry(),
    ]


def is_configuration(document: Mapping[str, Any]) -> bool:
    """Whether this is the ConfigMap with Lamina's configuration."""
    return (document["kind"], document["metadata"]["name"]) == ("ConfigMap", CONFIG_MAP)


def _configuration() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta(CONFIG_MAP),
        "data": {CONFIG_MAP_KEY: Yaml(Value("config"))},
    }


def _critical_pods() -> dict[str, Any]:
    """Some clusters admit pods with system priority classes only where a quota allows them."""
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
