"""The state of replicas: whether and when they are available, and how often their containers restarted."""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.ports.kube import Object
from lamina.ports.kube.moments import seconds_of
from lamina_lab.kubernetes import objects


def ready_for_s(pod: Object, now: float) -> float:
    ready = objects.condition(pod, "Ready")
    since = seconds_of(ready.get("lastTransitionTime", "")) if ready and ready.get("status") == "True" else None
    return now - since if since is not None else 0.0


def restarts(pod: Mapping[str, Any]) -> int:
    return sum(int(status.get("restartCount") or 0) for status in objects.status(pod).get("containerStatuses") or ())


def is_available(pod: Object, min_ready_s: float, now: float) -> bool:
    """Ready for at least `min_ready_s` seconds."""
    return objects.is_ready(pod) and (min_ready_s == 0 or ready_for_s(pod, now) >= min_ready_s)


def available_in(pods: Sequence[Object], min_ready_s: float, now: float) -> float | None:
    """Seconds until the next ready pod becomes available; None if there is none."""
    waits = [
        max(0.0, min_ready_s - ready_for_s(pod, now))
        for pod in pods
        if objects.is_active(pod) and objects.is_ready(pod) and not is_available(pod, min_ready_s, now)
    ]
    return min(waits, default=None)
