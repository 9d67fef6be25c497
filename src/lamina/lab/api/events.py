"""Events have two names, `events` and `events.events.k8s.io`, and one storage. It keeps the older form."""

from __future__ import annotations

from lamina.lab.api.status import Obj

# field of the older form -> field of events.k8s.io/v1
_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}


def to_core(event: Obj) -> Obj:
    """From events.k8s.io/v1 to v1."""
    older = {new: old for old, new in _RENAMED.items()}
    return {**{older.get(key, key): value for key, value in event.items()}, "apiVersion": "v1"}


def from_core(event: Obj) -> Obj:
    """From v1 to events.k8s.io/v1."""
    return {
        **{_RENAMED.get(key, key): value for key, value in event.items()},
        "apiVersion": "events.k8s.io/v1",
    }
