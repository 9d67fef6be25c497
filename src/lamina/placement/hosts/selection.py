"""Which nodes a pod selects by their labels: its node selector and its required node affinity."""

from collections.abc import Mapping
from typing import Any

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def unmatched_labels(spec: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, str]:
    """Those labels of the pod's node selector that the node does not have."""
    selector: Mapping[str, str] = spec.get("nodeSelector") or {}
    return {key: value for key, value in selector.items() if labels.get(key) != value}


def allowed_by_affinity(spec: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    """Whether one of the terms of the required affinity holds for the node `name`, or the pod has none."""
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if required is None:
        return True
    return any(_term_holds(term, name, labels) for term in required.get("nodeSelectorTerms") or ())


def _term_holds(term: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    """Whether all of the term holds. An empty term selects no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    holds = all(_requirement_holds(each, labels) for each in expressions)
    return holds and all(_requirement_holds(each, {"metadata.name": name}) for each in fields)


def _requirement_holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a requirement holds; one with an operator that is not known does not."""
    value, values = labels.get(requirement["key"]), requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(operator, value, values)
    return False


def _compares(operator: str, value: str | None, values: Any) -> bool:
    """Whether the label is a number greater, or less, than the only value."""
    try:
        (limit,) = map(int, values)
        number = int(value or "")
    except ValueError:
        return False
    return number > limit if operator == "Gt" else number < limit
