"""Probes of a container: when to ask, and what a row of answers means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe's rule; times in seconds, with Kubernetes' defaults."""

    action: Mapping[str, Any]
    initial_delay_s: float
    period_s: float
    timeout_s: float
    success_threshold: int
    failure_threshold: int

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Probe:
        return cls(
            spec,
            spec.get("initialDelaySeconds") or 0,
            spec.get("periodSeconds") or 10,
            spec.get("timeoutSeconds") or 1,
            spec.get("successThreshold") or 1,
            spec.get("failureThreshold") or 3,
        )


@dataclass(slots=True)
class Tally:
    """Counts equal answers in a row; an answer counts once its threshold is reached."""

    probe: Probe
    _last: bool | None = None
    _run: int = 0

    def note(self, success: bool) -> bool | None:
        """The verdict after one more answer, or None while there is none."""
        self._run = self._run + 1 if success is self._last else 1
        self._last = success
        needed = self.probe.success_threshold if success else self.probe.failure_threshold
        return success if self._run >= needed else None


def port_number(port: object, container: Mapping[str, Any]) -> int:
    """A probe's port, which may be the name of one of the container's. Raises ValueError."""
    if isinstance(port, int):
        return port
    for entry in container.get("ports") or ():
        if entry.get("name") == port:
            return int(entry["containerPort"])
    return int(str(port))
