"""Taints and tolerations."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

HARD = ("NoSchedule", "NoExecute")


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """As in Kubernetes: no effect means every effect, no key with Exists means every key."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def untolerated(
    taints: Iterable[Mapping[str, Any]], tolerations: Iterable[Mapping[str, Any]], effects: Collection[str] = HARD
) -> Mapping[str, Any] | None:
    """The first taint of these effects that no toleration covers."""
    accepted = list(tolerations)
    for taint in taints:
        if str(taint.get("effect")) in effects and not any(tolerates(each, taint) for each in accepted):
            return taint
    return None
