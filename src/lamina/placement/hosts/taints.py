"""Which taints of a node keep a pod away that does not tolerate them."""

from collections.abc import Mapping, Sequence
from typing import Any

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
