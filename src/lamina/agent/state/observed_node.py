"""The Node object as the API server last reported it."""

from collections.abc import Mapping

from msgspec import Struct


class ObservedNode(Struct, frozen=True, kw_only=True):
    """The fields of the Node object that the agent uses."""

    uid: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
