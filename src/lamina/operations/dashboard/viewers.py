"""Who looks at a dashboard that others can reach, and what the API server lets each of them list.

A viewer is known by a bearer token. Nothing is shown that the API server was not asked about in the last minute, and
nothing where it does not answer. Viewers that it accepted before wait in a line of their own. Others take turns by
their addresses, so that callers without an accepted token keep no viewer out.
"""

import hashlib
import logging
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from lamina.errors import Outside
from lamina.operations.dashboard.document import ClusterDocument, GpuCard, GpuPart, NodeCard, PodCard
from lamina.operations.dashboard.history import AllocationPoint
from lamina.ports.caller_queue import CallerQueue, Crowded
from lamina.ports.caller_reviews import (
    BUSY,
    MAX_KEPT,
    UNAVAILABLE,
    UNKNOWN,
    CallerVerdict,
    is_token,
    may,
    user_of,
)
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

    @property
    def nothing(self) -> bool:
        """Whether nothing may be shown."""
        return not (self.nodes or self.everywhere or self.namespaces)

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

    @property
    def account(self) -> str:
        """Whose it is. The service accounts of a namespace are one account: who makes one can make many."""
        name = str(self.user["username"])
        return name.rpartition(":")[0] if name.startswith("system:serviceaccount:") else name


class DashboardViewers:
    """Remembers only viewers whose tokens the API server accepts, so that others cannot push them out."""

    def __init__(self, kube: Kube, clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._known: OrderedDict[str, _Viewer] = OrderedDict()
        self._accepted = CallerQueue(_AT_ONCE, MAX_WAITING)
        self._others = CallerQueue(_AT_ONCE, MAX_WAITING)

    async def access(self, token: str, address: str, namespaces: Iterable[str]) -> ViewerAccess | CallerVerdict:
        """What the viewer with this token and from this address may list of these namespaces, or why nothing is
        answered."""
        try:
            viewer = await self._viewer(token, address)
            return UNKNOWN if viewer is None else await self._access(viewer, namespaces)
        except Crowded:
            return BUSY
        except Outside as error:
            log.warning("A viewer of the dashboard cannot be checked: %s", error)
            return UNAVAILABLE

    async def may_list_events(self, token: str, address: str, namespace: str) -> bool:
        """Whether the viewer with this token may list events there; no where the API server does not say so."""
        try:
            viewer = await self._viewer(token, address)
            return viewer is not None and await self._may(viewer, EVENTS, namespace)
        except Crowded:
            return False
        except Outside as error:
            log.warning("A viewer of the dashboard cannot be checked: %s", error)
            return False

    def account(self, token: str) -> str:
        """Whose token this is, as far as the API server has said; empty where it has not."""
        viewer = self._known.get(_key(token))
        return viewer.account if viewer else ""

    async def _viewer(self, token: str, address: str) -> _Viewer | None:
        if not is_token(token):
            return None
        key = _key(token)
        known = self._known.get(key)
        if known is not None and self._clock.monotonic() < known.until:
            return known
        async with self._accepted.turn(known.account) if known else self._others.turn(address):
            user = await user_of(self._kube, token)
        self._known.pop(key, None)
        if user is None:
            return None
        self._known[key] = viewer = _Viewer(user, self._clock.monotonic() + KEPT_S)
        if len(self._known) > MAX_KEPT:
            self._forget_one()
        return viewer

    def _forget_one(self) -> None:
        """The oldest of the account that has most tokens here."""
        counts = Counter(viewer.account for viewer in self._known.values())
        account, _ = counts.most_common(1)[0]
        del self._known[next(key for key, viewer in self._known.items() if viewer.account == account)]

    async def _access(self, viewer: _Viewer, namespaces: Iterable[str]) -> ViewerAccess:
        nodes, everywhere = await self._may(viewer, INVENTORIES), await self._may(viewer, PODS)
        if everywhere:
            return ViewerAccess(nodes, everywhere=True)
        allowed = [namespace for namespace in sorted(set(namespaces)) if await self._may(viewer, PODS, namespace)]
        return ViewerAccess(nodes, everywhere=False, namespaces=frozenset(allowed))

    async def _may(self, viewer: _Viewer, resource: Resource, namespace: str = "") -> bool:
        if (resource, namespace) not in viewer.answers:
            asked = {"verb": "list", "group": resource.group, "resource": resource.plural, "namespace": namespace}
            async with self._accepted.turn(viewer.account):
                answer = await may(self._kube, viewer.user, {"resourceAttributes": asked})
            viewer.answers[resource, namespace] = answer
        return viewer.answers[resource, namespace]


def _key(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


OTHERS = "other namespaces"
HIDDEN_REASON = "It waits for a GPU; its events say why"
"""For those who may not list inventories."""


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
    """The lines of `lamina why` name pods and claims of all namespaces. The sentence of a reason and the ways out of it
    name nodes, and what they have free."""
    if not access.nodes:
        hidden = HIDDEN_REASON if card.state == "pending" and card.reason else ""
        card = msgspec.structs.replace(card, reason=hidden or card.reason, ways_out=())
    return card if access.everywhere and access.nodes else msgspec.structs.replace(card, why=())


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
