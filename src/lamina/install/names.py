"""Names and marks of what is installed."""

from typing import Any

from lamina.control.webhook_configuration import NAMESPACE as NAMESPACE

PART_OF = {"app.kubernetes.io/part-of": "lamina"}
CONTROL, SCHEDULER, AGENT = "lamina-control", "lamina-scheduler", "lamina-agent"


def chosen(part: str) -> dict[str, str]:
    """The labels by which pods of a part are found."""
    return {"app.kubernetes.io/name": "lamina", "app.kubernetes.io/component": part.removeprefix("lamina-")}


def labels(part: str = "") -> dict[str, str]:
    """The labels that an object carries, of a part or of all."""
    return (chosen(part) if part else {"app.kubernetes.io/name": "lamina"}) | PART_OF


def meta(name: str, part: str = "", **more: Any) -> dict[str, Any]:
    """Metadata of an object in our namespace."""
    return {"name": name, "namespace": NAMESPACE, "labels": labels(part), **more}


def cluster_meta(name: str, part: str = "") -> dict[str, Any]:
    """Metadata of an object of the whole cluster."""
    return {"name": name, "labels": labels(part)}
