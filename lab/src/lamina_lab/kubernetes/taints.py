"""Taints and tolerations."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

HARD = ("NoSchedule", "NoExecute")


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """As in Kubernetes: without an effect every effect, without a key and with Exists every key."""
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
    """The first taint with one of these effects that no toleration covers."""
    accepted = list(tolerations)
    for taint in taints:
        if str(taint.get("effect")) in effects and not any(tolerates(toleration, taint) for toleration in accepted):
            return taint
    return None
