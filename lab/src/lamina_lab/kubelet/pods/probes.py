"""Probes of a container: when to probe, and when results count."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Probe(Struct, frozen=True):
    """A probe's settings; times in seconds, with Kubernetes' defaults."""

    action: Mapping[str, Any]
    initial_delay_s: float
    period_s: float
    timeout_s: float
    success_threshold: int
    failure_threshold: int

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "Probe":
        return cls(
            spec,
            spec.get("initialDelaySeconds") or 0,
            spec.get("periodSeconds") or 10,
            spec.get("timeoutSeconds") or 1,
            spec.get("successThreshold") or 1,
            spec.get("failureThreshold") or 3,
        )


class Tally(Struct):
    """Counts equal results in a row; a result counts once its threshold is reached."""

    probe: Probe
    _last: bool | None = None
    _run: int = 0

    def note(self, success: bool) -> bool | None:
        """The result after one more probe, or None while no threshold is reached."""
        self._run = self._run + 1 if success is self._last else 1
        self._last = success
        needed = self.probe.success_threshold if success else self.probe.failure_threshold
        return success if self._run >= needed else None


def port_number(port: object, container: Mapping[str, Any]) -> int:
    """A probe's port, which may be the name of a container port. Raises ValueError."""
    if isinstance(port, int):
        return port
    for entry in container.get("ports") or ():
        if entry.get("name") == port:
            return int(entry["containerPort"])
    return int(str(port))
