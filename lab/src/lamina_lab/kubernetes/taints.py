"""Taints and tolerations."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from lamina.ports.kube.moments import seconds_of

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


def eviction_delay_s(
    tolerations: Iterable[Mapping[str, Any]], taints: Iterable[Mapping[str, Any]], now: float
) -> float | None:
    """Seconds until these taints evict a pod with these tolerations. None means never; 0 or less means now.

    The taint that is tolerated for the shortest time decides.
    """
    accepted = list(tolerations)
    shortest: float | None = None
    for taint in taints:
        if taint.get("effect") != "NoExecute":
            continue
        matching = [toleration for toleration in accepted if tolerates(toleration, taint)]
        if not matching:
            return 0.0
        limits = [
            float(toleration["tolerationSeconds"])
            for toleration in matching
            if toleration.get("tolerationSeconds") is not None
        ]
        if not limits:
            continue
        added = seconds_of(taint.get("timeAdded", "")) or now
        left = added + min(limits) - now
        shortest = left if shortest is None else min(shortest, left)
    return shortest
