"""Pods that the leader last refused on every node: how many, why, and for how long."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lamina.controller.pending_pods import PendingPod


class RefusedPods(NamedTuple):
    """The pods of one namespace that one cause keeps pending, and how long the first of them has been."""

    pods: int
    longest_s: float


def refused_pods(pending: Iterable[PendingPod], now: float) -> Mapping[tuple[str, str], RefusedPods]:
    """By namespace and cause."""
    found: dict[tuple[str, str], RefusedPods] = {}
    for pod in pending:
        if pod.refused(now):
            key = pod.namespace, pod.cause
            pods, longest_s = found.get(key, (0, 0.0))
            found[key] = RefusedPods(pods + 1, max(longest_s, now - pod.refused_since))
    return found
