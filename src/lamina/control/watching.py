"""Feed the ledger and the quotas from the cluster, and say when all of it has been read for the first time."""

import asyncio
import logging
from collections.abc import Callable

from lamina.control.arrivals import arrival_of
from lamina.control.capacity import Capacity
from lamina.control.configuration import Configuration
from lamina.control.grant_objects import LONGEST_LABEL, NODE_LABEL, grant_record, inventory_of
from lamina.control.quotas import Quotas
from lamina.control.stages import pod_state
from lamina.control.unrecorded import asked_by
from lamina.errors import BadInput
from lamina.model.gpus import Inventory
from lamina.model.host_size import offered_by
from lamina.model.nodes import kept_out
from lamina.ports.kube import GRANTS, INVENTORIES, NODES, PODS, RESOURCE_QUOTAS, Kube, Object, Resource, follow
from lamina.ports.kube.follow import ADDED, DELETED, MODIFIED, SYNCED

log = logging.getLogger(__name__)

_ASKED, _ARRIVAL = "asked", "arrival"
"""Beside the fields of a trimmed pod: what its containers asked that have run, and what it asks in all."""
_OFFERED, _KEPT_OUT = "offered", "keptOut"
"""Beside the metadata of a node: what it offers, and whether its labels keep Lamina out."""


class Watching:
    """Runs one task per kind of object. `rebuilt` is set once every kind has been listed."""

    def __init__(
        self,
        kube: Kube,
        capacity: Capacity,
        quotas: Quotas,
        configuration: Configuration,
        *,
        now: Callable[[], float],
    ) -> None:
        self._kube = kube
        self._configuration = configuration
        self._ledger, self._host, self._arrivals = capacity.ledger, capacity.host, capacity.arrivals
        self._quotas = quotas
        self._now = now
        self._inventories: dict[str, Inventory] = {}
        self._kept_out: set[str] = set()
        self._node_uids: dict[str, str] = {}
        self._tell: dict[Resource, Callable[[str, Object], None]] = {
            INVENTORIES: self._inventory,
            GRANTS: self._grant,
            PODS: self._pod,
            NODES: self._node,
            RESOURCE_QUOTAS: self._quota,
        }
        self._missing = {resource.plural for resource in self._tell}
        self.rebuilt = asyncio.Event()

    @property
    def missing(self) -> list[str]:
        """Kinds that have not been listed yet."""
        return sorted(self._missing)

    def uid_of_node(self, name: str) -> str:
        """Empty where no such node is known."""
        return self._node_uids.get(name, "")

    async def run(self) -> None:
        """Follow everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource in self._tell:
                group.create_task(self._follow(resource))

    async def catch_up(self, node: str) -> None:
        """Read the grants and pods of one node as they are now. Raises Outside."""
        labels = f"{NODE_LABEL}={node}" if len(node) <= LONGEST_LABEL else ""
        for grant in (await self._kube.list(GRANTS, labels=labels)).items:
            self._told(GRANTS, MODIFIED, grant)
        for pod in (await self._kube.list(PODS, fields=f"spec.nodeName={node}")).items:
            self._told(PODS, MODIFIED, self._trimmed_pod(pod))

    async def _follow(self, resource: Resource) -> None:
        trim = {PODS: self._trimmed_pod, NODES: _trimmed_node}.get(resource, _as_it_is)
        async for kind, obj in follow(self._kube, resource, trim=trim):
            if kind == SYNCED:
                self._missing.discard(resource.plural)
                if not self._missing:
                    self.rebuilt.set()
                continue
            self._told(resource, kind, obj)

    def _told(self, resource: Resource, kind: str, obj: Object) -> None:
        try:
            self._tell[resource](kind, obj)
        except BadInput as problem:
            log.error("%s", problem)

    def _inventory(self, kind: str, obj: Object) -> None:
        name = obj["metadata"]["name"]
        # One that cannot be read offers nothing, whatever stood there before.
        self._inventories.pop(name, None)
        try:
            if kind != DELETED:
                self._inventories[name] = inventory_of(obj)
        finally:
            self._offer(name)

    def _offer(self, node: str) -> None:
        """Have the ledger know what the node offers, which is nothing while its labels keep Lamina out."""
        inventory = self._inventories.get(node)
        if inventory is None or node in self._kept_out:
            self._ledger.inventory_gone(node)
        else:
            self._ledger.inventory_seen(inventory)

    def _grant(self, kind: str, obj: Object) -> None:
        record = grant_record(obj)
        if kind == DELETED:
            self._ledger.grant_gone(record.uid, record.grant.pod_uid, self._now())
        else:
            self._ledger.grant_seen(record)

    def _pod(self, kind: str, obj: Object) -> None:
        uid, state, arrival = obj["metadata"]["uid"], pod_state(obj), obj[_ARRIVAL]
        if kind == ADDED:
            self._arrivals.came(arrival)
        if kind == DELETED or state.over:
            self._host.pod_gone(uid)
        elif state.node and self._host.pod_seen(uid, state.node, arrival.size):
            self._arrivals.came_to(state.node, arrival)
        if kind == DELETED:
            self._ledger.pod_gone(uid, self._now())
        else:
            self._ledger.pod_seen(uid, state, self._now(), obj[_ASKED])

    def _node(self, kind: str, obj: Object) -> None:
        name = obj["metadata"]["name"]
        if kind == DELETED:
            self._host.node_gone(name)
            self._node_uids.pop(name, None)
        else:
            self._host.node_seen(name, obj[_OFFERED])
            self._node_uids[name] = obj["metadata"]["uid"]
        others = kind != DELETED and obj[_KEPT_OUT]
        if others != (name in self._kept_out):
            self._kept_out ^= {name}
            self._offer(name)

    def _trimmed_pod(self, pod: Object) -> Object:
        """What is read of a pod; a cluster has tens of thousands of them, and most of each is its template."""
        return {
            "metadata": _metadata(pod),
            "spec": {"nodeName": (pod.get("spec") or {}).get("nodeName")},
            "status": {"phase": (pod.get("status") or {}).get("phase")},
            _ASKED: asked_by(pod, self._configuration.value),
            _ARRIVAL: arrival_of(pod, self._configuration.value),
        }

    def _quota(self, kind: str, obj: Object) -> None:
        if kind == DELETED:
            self._quotas.gone(obj)
        else:
            self._quotas.seen(obj)


def _trimmed_node(node: Object) -> Object:
    """Its kubelet tells of it all the time, and what it offers seldom changes."""
    return {
        "metadata": _metadata(node),
        _OFFERED: offered_by(node),
        _KEPT_OUT: kept_out(node["metadata"].get("labels")),
    }


def _metadata(obj: Object) -> Object:
    return {key: obj["metadata"].get(key) for key in ("name", "namespace", "uid", "resourceVersion")}


def _as_it_is(obj: Object) -> Object:
    return obj
