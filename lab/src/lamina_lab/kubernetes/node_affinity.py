"""Which nodes a pod allows: nodeSelector and required node affinity."""

from collections.abc import Mapping
from typing import Any

from lamina_lab.kubernetes import objects


def allows(pod_spec: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Whether both the pod's selector and its required affinity match the node."""
    labels = objects.labels(node)
    selector: Mapping[str, str] = pod_spec.get("nodeSelector") or {}
    if any(labels.get(label) != value for label, value in selector.items()):
        return False
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(term_holds(term, node) for term in required.get("nodeSelectorTerms") or ())


def term_holds(term: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Whether all expressions and fields of a term hold. An empty term matches nothing.

    The only field is metadata.name.
    """
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    named = {"metadata.name": objects.name(node)}
    return all(requirement_holds(expression, objects.labels(node)) for expression in expressions) and all(
        requirement_holds(field, named) for field in fields
    )


def requirement_holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """A requirement {key, operator, values} against labels. An unknown operator never holds."""
    value = labels.get(str(requirement.get("key")))
    values = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compare(value, values) > 0
        case "Lt":
            return _compare(value, values) < 0
    return False


def _compare(value: str | None, values: Any) -> int:
    """-1, 0 or 1: the label is less than, equal to or greater than the value. 0 if either is not a number."""
    try:
        (wanted,) = values
        have, want = int(str(value)), int(wanted)
    except ValueError:
        return 0
    return (have > want) - (have < want)
