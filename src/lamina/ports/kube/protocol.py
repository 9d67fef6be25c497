"""What can be asked of Kubernetes. Errors are those of `errors`; every call may raise `Outside`."""

from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import msgspec

from lamina.ports.kube.resources import Resource

Object = dict[str, Any]


class StrategicPatch(NamedTuple):
    """A patch that merges the elements of lists by their keys, which Kubernetes knows for its own kinds."""

    body: Object


class BindingMetadata(NamedTuple):
    """What a Binding carries for its pod."""

    annotations: Mapping[str, str] = MappingProxyType({})
    labels: Mapping[str, str] = MappingProxyType({})


NO_METADATA = BindingMetadata()

Patch = Object | list[Object] | StrategicPatch
"""A merge patch is an object, a JSON patch a list of operations."""


def encoded_patch(patch: Patch) -> tuple[str, bytes]:
    """The media type and the body of a request."""
    if isinstance(patch, StrategicPatch):
        return "application/strategic-merge-patch+json", msgspec.json.encode(patch.body)
    kind = "json-patch" if isinstance(patch, list) else "merge-patch"
    return f"application/{kind}+json", msgspec.json.encode(patch)


class Listing(NamedTuple):
    """The objects of one moment, and the resourceVersion from which a watch goes on."""

    items: list[Object]
    version: str


class Watched(NamedTuple):
    """One line of a watch. `kind` is ADDED, MODIFIED, DELETED or BOOKMARK (its object carries only a version)."""

    kind: str
    object: Object


class Kube(Protocol):
    """One API server. An empty `namespace` on a namespaced kind means all of them where a collection is asked for.

    `labels` and `fields` are selectors as kubectl writes them.
    """

    @property
    def lamina_namespace(self) -> str:
        """Where Lamina is installed."""
        ...

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object: ...

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "") -> Listing: ...

    def watch(
        self, resource: Resource, version: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Watched]:
        """What happens after `version`, until the server ends the watch. Raises Gone if that is too long ago."""
        ...

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        """Make `obj`; its kind and apiVersion are filled in. Raises AlreadyExists."""
        ...

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Put `obj` in place of what has its name; a resourceVersion in it must be the present one, else Conflict."""
        ...

    async def patch(
        self, resource: Resource, name: str, body: Patch, *, namespace: str = "", subresource: str = ""
    ) -> Object: ...

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str = "", grace_s: int | None = None
    ) -> None:
        """Delete the object of that name, if `uid` is empty or its own. Raises NotFound, Conflict.

        `grace_s` is how long a pod's containers may take to end; None leaves it to the pod.
        """
        ...

    async def bind(
        self,
        pod: str,
        *,
        namespace: str,
        uid: str,
        node: str,
        metadata: BindingMetadata = NO_METADATA,
        version: str = "",
    ) -> None:
        """Give the pod to a node. Raises NotFound, Conflict where it has a node or is another pod of that name.

        With `version`, only that version of the pod gets the node, and Conflict is raised for another one.

        The annotations are written in the same step. Whether the labels are depends on the server: Kubernetes copies
        them from version 1.35 on, and before if the feature PodTopologyLabelsAdmission is on.
        """
        ...

    async def evict(self, pod: str, *, namespace: str, uid: str, grace_s: int | None = None) -> None:
        """Evict the pod if that is its UID. Raises Outside where a PodDisruptionBudget does not allow it.

        `grace_s` seconds after that its containers are killed; None: as its own specification says.
        """
        ...

    async def close(self) -> None: ...


class ProxiedKube(Kube, Protocol):
    """A server that also passes requests on to pods and nodes, as its subresource `proxy` does."""

    async def proxied(self, resource: Resource, name: str, path: str, *, namespace: str = "") -> bytes:
        """What a pod or node answers at `path`. `name` is its name and a port, such as `agent-x7k2p:9394`."""
        ...


class ConnectedKube(ProxiedKube, Protocol):
    """A server that a command is connected to, with its address."""

    server: str
    lamina_namespace: str

    async def version(self) -> Object:
        """What the server says of its version."""
        ...
