"""Follows the pods of the node, to know which have ended, and to which workloads they belong."""

from typing import Protocol

from lamina.agent.cleanup.survivors import SurvivorPublisher
from lamina.agent.context import NodeContext
from lamina.agent.inventory.tickets import ticket_kinds
from lamina.agent.state.cluster import requested
from lamina.agent.state.observed import NO_OWNER, PodOwners
from lamina.core.pod_status import has_terminated, is_over
from lamina.core.sizes import RESIZE_STATUS
from lamina.ports.kube import PODS, Object, follow
from lamina.ports.kube.follow import DELETED, SYNCED, identity

_ENDED, _TERMINATED, _RESIZED, _OWNER, _TICKETS = "ended", "terminated", "resized", "owner", "tickets"
"""Fields of a trimmed pod: whether it has ended, whether its containers have terminated, what became of its size, whose
it is, and whether it may have a grant."""


class ResizeListener(Protocol):
    """Follows what becomes of the sizes of pods."""

    def observe(self, uid: str, status: str) -> None: ...

    def observe_end(self, uid: str) -> None: ...


class DoorListener(Protocol):
    """Knows which pods ask for devices of the plugins."""

    synced: bool

    def observe(self, uid: str, namespace: str, name: str) -> None: ...

    def observe_end(self, uid: str) -> None: ...


class PodWatch:
    """Tells the publisher of survivors, who resizes containers, and who serves claims, what happens to pods."""

    def __init__(
        self,
        node: NodeContext,
        survivors: SurvivorPublisher,
        sizes: ResizeListener,
        owners: PodOwners,
        doors: DoorListener,
    ) -> None:
        self._node = node
        self._survivors = survivors
        self._sizes = sizes
        self._owners = owners
        self._doors = doors
        self._resources = {kind.resource for kind in ticket_kinds(node.config)}

    async def run(self) -> None:
        fields = f"spec.nodeName={self._node.node}"
        async for kind, pod in follow(self._node.kube, self._node.clock, PODS, fields=fields, trim=self._trim):
            if kind == SYNCED:
                self._doors.synced = True
                await self._survivors.observe_list()
            elif kind == DELETED or pod[_ENDED]:
                self._sizes.observe_end(pod["metadata"]["uid"])
                self._owners.observe_end(pod["metadata"]["uid"])
                self._doors.observe_end(pod["metadata"]["uid"])
                await self._survivors.observe_end(pod["metadata"]["uid"], terminated=pod[_TERMINATED])
            else:
                self._survivors.observe(pod["metadata"]["uid"])
                self._sizes.observe(pod["metadata"]["uid"], pod[_RESIZED])
                self._owners.observe(pod["metadata"]["uid"], pod[_OWNER])
                if pod[_TICKETS]:
                    self._doors.observe(*(pod["metadata"][key] for key in ("uid", "namespace", "name")))

    def _trim(self, pod: Object) -> Object:
        """The part of a pod that is read. One that cannot be read has not ended."""
        meta = identity(pod)
        unread: Object = {_ENDED: False, _TERMINATED: False, _RESIZED: "", _OWNER: NO_OWNER, _TICKETS: True}
        trimmed: Object = {"metadata": meta, **unread}
        with self._node.aside.around("state of a pod", f"{meta['namespace']}/{meta['name']}"):
            ended = is_over(pod)
            resized = str((pod["metadata"].get("annotations") or {}).get(RESIZE_STATUS) or "")
            trimmed |= {_ENDED: ended, _TERMINATED: has_terminated(pod), _RESIZED: resized}
        with self._node.aside.around("requests of a pod", f"{meta['namespace']}/{meta['name']}"):
            trimmed[_TICKETS] = bool(self._resources & requested(pod))
        with self._node.aside.around("owner of a pod", f"{meta['namespace']}/{meta['name']}"):
            trimmed[_OWNER] = self._owners.owner_of(pod)
        return trimmed
