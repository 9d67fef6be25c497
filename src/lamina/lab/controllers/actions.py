"""What a controller has decided to do, as plain data; the hands in `hands.py` do it."""

from dataclasses import dataclass

from lamina.lab.informer.objects import Object
from lamina.ports.kube import Resource


@dataclass(frozen=True, slots=True)
class Create:
    """Make `obj`."""

    resource: Resource
    obj: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove `obj`, only if it is still the one with this uid."""

    resource: Resource
    obj: Object


@dataclass(frozen=True, slots=True)
class Patch:
    """Merge `body` into `obj`, only if nobody changed it since it was read."""

    resource: Resource
    obj: Object
    body: Object
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A sentence about `obj` for people, shown by describe and `get events`."""

    resource: Resource
    obj: Object
    reason: str
    message: str
    warning: bool = False


Action = Create | Delete | Patch | Event
