"""Who looks at a dashboard that others can reach, and what the API server lets each of them list.

A viewer is known by a bearer token. Nothing is shown that the API server was not asked about in the last minute, and
nothing where it does not answer.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from lamina.errors import Outside
from lamina.operations.dashboard.document import ClusterDocument, GpuCard, GpuPart, NodeCard, PodCard
from lamina.operations.dashboard.history import AllocationPoint
from lamina.ports.caller_reviews import BUSY, MAX_KEPT, UNAVAILABLE, UNKNOWN, CallerVerdict, may, user_of
from lamina.ports.clock import Clock
from lamina.ports.kube import EVENTS, INVENTORIES, PODS, Kube, Object, Resource

log = logging.getLogger(__name__)

KEPT_S = 60.0
"""How long an answer of the API server holds."""
MAX_WAITING = 64
_AT_ONCE = 4


class ViewerAccess(NamedTuple):
    """What a viewer may list: inventories, and pods everywhere or in some namespaces."""

    nodes: bool
    everywhere: bool
    namespaces: frozenset[str] = frozenset()

    def sees(self, namespace: str) -> bool:
        """Whether pods of the namespace may be shown."""
        return self.everywhere or namespace in self.namespaces


EVERYTHING = ViewerAccess(nodes=True, everywhere=True)


@dataclass
class _Viewer:
    user: Object
    until: float
    answers: dict[tuple[Resource, str], bool] = field(default_factory=dict)
    """By what is listed and its namespace, which is empty for all."""


class DashboardViewers:
    """Remembers only viewers whose tokens the API server accepts, so that others cannot push them out."""

    def __init__(self, kube: Kube, clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._known: OrderedDict[bytes, _Viewer] = OrderedDict()
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def access(self, token: str, namespaces: Iterable[str]) -> ViewerAccess | CallerVerdict:
        """What the viewer with this token may list of these namespaces, or why nothing is answered."""
        if not token:
            return UNKNOWN
        if self._waiting >= MAX_WAITING:
            return BUSY
        self._waiting += 1
        try:
            viewer = await self._viewer(token)
            return UNKNOWN if viewer is None else await self._access(viewer, namespaces)
        except Outside as error:
            log.warning("A viewer of the dashboard cannot be checked: %s", error)
            return UNAVAILABLE
        finally:
            self._waiting -= 1

    async def may_list_events(self, token: str, namespace: str) -> bool:
        """Whether the viewer with this token may list events there; no where the API server does not say so."""
        try:
            viewer = await self._viewer(token)
            return viewer is not None and await self._may(viewer, EVENTS, namespace)
        except Outside as error:
            log.warning("A viewer of the dashboard cannot be checked: %s", error)
            return False

    async def _viewer(self, token: str) -> _Viewer | None:
        key = hashlib.sha256(token.encode(errors="replace")).digest()
        known = self._known.get(key)
        if known is not None and self._clock.monotonic() < known.until:
            return known
        async with self._free:
            user = await user_of(self._kube, token)
        self._known.pop(key, None)
        if user is None:
            return None
        self._known[key] = viewer = _Viewer(user, self._clock.monotonic() + KEPT_S)
        while len(self._known) > MAX_KEPT:
            self._known.popitem(last=False)
        return viewer

    async def _access(self, viewer: _Viewer, namespaces: Iterable[str]) -> ViewerAccess:
        nodes, everywhere = await self._may(viewer, INVENTORIES), await self._may(viewer, PODS)
        if everywhere:
            return ViewerAccess(nodes, everywhere=True)
        allowed = [namespace for namespace in sorted(set(namespaces)) if await self._may(viewer, PODS, namespace)]
        return ViewerAccess(nodes, everywhere=False, namespaces=frozenset(allowed))

    async def _may(self, viewer: _Viewer, resource: Resource, namespace: str = "") -> bool:
        if (resource, namespace) not in viewer.answers:
            asked = {"verb": "list", "group": resource.group, "resource": resource.plural, "namespace": namespace}
            async with self._free:
                answer = await may(self._kube, viewer.user, {"resourceAttributes": asked})
            viewer.answers[resource, namespace] = answer
        return viewer.answers[resource, namespace]


OTHERS = "other namespaces"


def namespaces_of(document: ClusterDocument) -> set[str]:
    """The namespaces that the document names."""
    return {card.namespace for card in document.pods.values()}


def visible(document: ClusterDocument, access: ViewerAccess) -> ClusterDocument:
    """Pods of namespaces that the viewer may list, and nodes where inventories may be listed. What other pods hold of
    a GPU is one part without their names."""
    if access.nodes and access.everywhere:
        return document
    pods = {uid: _pod(card, access) for uid, card in document.pods.items() if access.sees(card.namespace)}
    if not access.nodes:
        return ClusterDocument(pods=pods)
    nodes = {name: _node(card, pods) for name, card in document.nodes.items()}
    figures = msgspec.structs.replace(document.cluster, cost_per_hour=None, currency="", unpriced_gpus=0)
    return ClusterDocument(cluster=figures, nodes=nodes, pods=pods)


def seen_points(points: Iterable[AllocationPoint], access: ViewerAccess) -> list[AllocationPoint]:
    """What the viewer may see of the allocation over time: sums with the map, and costs with everything."""
    if not access.nodes:
        return []
    return [point if access.everywhere else point._replace(cost_per_hour=None) for point in points]


def _pod(card: PodCard, access: ViewerAccess) -> PodCard:
    """The lines of `lamina why` name pods and claims of all namespaces, the sentence of a reason only the pod's own."""
    return card if access.everywhere else msgspec.structs.replace(card, why=())


def _node(card: NodeCard, pods: Mapping[str, PodCard]) -> NodeCard:
    return msgspec.structs.replace(card, notes=(), gpus=tuple(_gpu(gpu, pods) for gpu in card.gpus))


def _gpu(gpu: GpuCard, pods: Collection[str]) -> GpuCard:
    shown = tuple(part for part in gpu.parts if part.pod in pods)
    hidden = [part for part in gpu.parts if part.pod not in pods]
    if not hidden:
        return gpu
    others = GpuPart(
        pod="",
        name=OTHERS,
        memory_mib=sum(part.memory_mib for part in hidden),
        cores=sum(part.cores for part in hidden),
        whole=any(part.whole for part in hidden),
        unlimited=all(part.unlimited for part in hidden),
    )
    return msgspec.structs.replace(gpu, parts=(*shown, others))
