"""What a controller has decided to do, as plain data. The executor carries it out."""

from msgspec import Struct

from lamina.ports.kube import Object, Resource


class Create(Struct, frozen=True):
    """Create `obj`."""

    resource: Resource
    obj: Object


class Delete(Struct, frozen=True):
    """Delete `obj`, only if it still has this uid."""

    resource: Resource
    obj: Object


class Patch(Struct, frozen=True):
    """Merge `body` into `obj`, only if it has not changed since it was read."""

    resource: Resource
    obj: Object
    body: Object
    subresource: str = ""


class Event(Struct, frozen=True):
    """An event about `obj`, shown by `kubectl describe` and `kubectl get events`."""

    resource: Resource
    obj: Object
    reason: str
    message: str
    warning: bool = False


Action = Create | Delete | Patch | Event
