"""Names and labels of the installed objects."""

from typing import Any

from lamina.core.component_names import NAMESPACE

PART_OF = {"app.kubernetes.io/part-of": "lamina"}
COMPONENT = "app.kubernetes.io/component"
CONTROLLER, SCHEDULER, AGENT, MPS = "lamina-controller", "lamina-scheduler", "lamina-agent", "lamina-mps"
DASHBOARD = "lamina-dashboard"


def chosen(part: str) -> dict[str, str]:
    """The labels that select the pods of a component."""
    return {"app.kubernetes.io/name": "lamina", COMPONENT: part.removeprefix("lamina-")}


def labels(part: str = "") -> dict[str, str]:
    """The labels of an object, of one component or of all."""
    return (chosen(part) if part else {"app.kubernetes.io/name": "lamina"}) | PART_OF


def meta(name: str, part: str = "", **more: Any) -> dict[str, Any]:
    """Metadata of an object in the namespace of Lamina."""
    return {"name": name, "namespace": NAMESPACE, "labels": labels(part), **more}


def cluster_meta(name: str, part: str = "") -> dict[str, Any]:
    """Metadata of a cluster-scoped object."""
    return {"name": name, "labels": labels(part)}
