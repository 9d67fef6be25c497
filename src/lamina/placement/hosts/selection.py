"""Which nodes a pod may go to: by its node selector and required node affinity, and by the taints that it tolerates."""

from collections.abc import Mapping, Sequence
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


_KEEP_AWAY = ("NoSchedule", "NoExecute")
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""The taint of a node on which `kubectl cordon` was called."""


def untolerated_taints(
    taints: Sequence[Mapping[str, Any]], tolerations: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Those of the taints that keep a pod with these tolerations away."""
    return [
        taint
        for taint in taints
        if taint.get("effect") in _KEEP_AWAY and not any(_tolerates(each, taint) for each in tolerations)
    ]


def written(taint: Mapping[str, Any]) -> str:
    """The taint as `kubectl taint` takes it."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """A toleration without an effect is about each effect; `Exists` without a key is about each key."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if not key:
        return bool(operator == "Exists")
    if key != taint.get("key"):
        return False
    same = (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(operator == "Exists" or (operator == "Equal" and same))
