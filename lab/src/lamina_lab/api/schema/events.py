"""Events are served as `events` and `events.events.k8s.io` and stored once, in the older form."""

from lamina.ports.kube import Object

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


def to_core(event: Object) -> Object:
    """From events.k8s.io/v1 to v1."""
    older = {new: old for old, new in _RENAMED.items()}
    return {**{older.get(key, key): value for key, value in event.items()}, "apiVersion": "v1"}


def from_core(event: Object) -> Object:
    """From v1 to events.k8s.io/v1."""
    return {
        **{_RENAMED.get(key, key): value for key, value in event.items()},
        "apiVersion": "events.k8s.io/v1",
    }
