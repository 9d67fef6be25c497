"""Who looks at a dashboard that others can reach, and what the API server lets each of them list.

A viewer is known by a bearer token. Nothing is shown that the API server was not asked about in the last minute, and
nothing where it does not answer.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from lamina.errors import Outside
from lamina.ports.caller_reviews import BUSY, MAX_KEPT, UNAVAILABLE, UNKNOWN, CallerVerdict, may, user_of
from lamina.ports.clock import Clock
from lamina.ports.kube import INVENTORIES, PODS, Kube, Object, Resource

log = logging.getLogger(__name__)

KEPT_S = 60.0
"""How long an answer of the API server holds."""
MOST_WAITING = 64
_AT_ONCE = 4


class ViewerAccess(NamedTuple):
    """What a viewer may list: inventories, and pods everywhere or in some namespaces."""

    nodes: bool
    everywhere: bool
    namespaces: frozenset[str] = frozenset()

    def sees(self, namespace: str) -> bool:
        """Whether pods of the namespace may be shown."""
        return self.everywhere or namespace in self.namespaces


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
        if self._waiting >= MOST_WAITING:
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
