"""Watches that keep the ledger, the capacity and the quotas up to date, and know when everything was listed once.

An object that cannot be used is set aside with an event, and counts as if it did not exist; the others count.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from lamina.controller.capacity.request_mix import PodKind, pod_kind
from lamina.controller.context import Context
from lamina.controller.observation.write_barrier import WriteBarrier
from lamina.core.gpus import Inventory
from lamina.core.host_size import HostSize, offered_by
from lamina.core.nodes import is_discouraged, kept_out
from lamina.core.objects import confirmed_survivors, read_inventory
from lamina.core.pod_status import runs_containers
from lamina.ledger.grant_objects import MAX_LABEL, NODE_LABEL, grant_record
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.pod_stages import PodState, Stage, pod_state
from lamina.ledger.resize_requests import ResizedPod, resized_pod
from lamina.ledger.ticket_holders import TicketHolder, ticket_holder
from lamina.ledger.ungranted_pods import running_request
from lamina.ledger.used_claims import claims_of
from lamina.ports.kube import (
    DEVICE_CLASSES,
    GRANTS,
    INVENTORIES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    Object,
    Resource,
    follow,
)
from lamina.ports.kube.follow import ADDED, DELETED, MODIFIED, SYNCED, FollowedCollection, identity, trimmed_to
from lamina.ports.supervision import keep_running

_STATE, _RUNNING, _KIND, _STOPPED, _RESIZED, _LEAVING = "state", "running", "kind", "stopped", "resized", "leaving"
_TICKETS, _CLAIMS = "tickets", "claims"
"""Fields of a trimmed pod: its state, what its started containers requested, its kind, whether none runs, the size that
it asks for, whether it is being deleted, the tickets that it has, and the ResourceClaims that it uses."""
_OFFERED, _EXCLUDED, _DISCOURAGED = "offered", "excluded", "discouraged"
"""Fields of a trimmed node: what it offers, whether its labels exclude it from Lamina, and whether a taint of it keeps
pods away that could go elsewhere."""
_ERROR = "error"
"""The field of a trimmed object that could not be read."""
_UNREADABLE = PodKind(None, HostSize())


Report = Callable[[Resource, Object, str], None]
_TRIM_CLAIM = trimmed_to("spec", "status.allocation", "status.reservedFor")


class Watches:
    """Runs one task per resource. `synced` is set once every resource has been listed.

    `report` is called with each object that is set aside, and with the reason.
    """

    def __init__(self, context: Context, report: Report = lambda resource, obj, reason: None) -> None:
        self._context = context
        self._report = report
        self._set_aside = context.set_aside
        self._kube = context.kube
        self._ledger = context.ledger
        self._host, self._request_mix = context.cluster_state.host, context.cluster_state.request_mix
        self._quotas = context.quotas
        self._claims = context.cluster_state.claims
        self._claims.changed = self._update_inventory
        self._inventories: dict[str, tuple[Inventory, tuple[str, ...]]] = {}
        self.inventory_statuses: dict[str, Object] = {}
        """What the status of each Inventory is, by node; empty where none was written."""
        self._excluded: set[str] = set()
        self._node_uids: dict[str, str] = {}
        self._handlers: dict[Resource, Callable[[str, Object], None]] = {
            INVENTORIES: self._handle_inventory,
            GRANTS: self._handle_grant,
            PODS: self._handle_pod,
            NODES: self._handle_node,
            RESOURCE_QUOTAS: self._handle_quota,
        }
        self.resized_pods: dict[str, ResizedPod] = {}
        """Bound pods that ask for another size, or have asked for one, by UID."""
        self.leaving_pods: set[str] = set()
        """UIDs of bound pods that are being deleted."""
        self.ticket_holders: dict[str, TicketHolder] = {}
        """Bound pods that count for tickets, by UID."""
        self.discouraged_nodes: set[str] = set()
        """Nodes that have a taint with PreferNoSchedule."""
        self._unlisted = {resource.plural for resource in self._handlers}
        self.synced = asyncio.Event()
        self.write_barrier = WriteBarrier()
        trims = {PODS: self._trim_pod, NODES: _trim_node, RESOURCE_CLAIMS: _TRIM_CLAIM}
        for resource in (*self._handlers, RESOURCE_CLAIMS):
            trim = trims.get(resource, _keep)
            context.followed[resource] = FollowedCollection(context.kube, resource, trim=trim)

    @property
    def unlisted(self) -> list[str]:
        """Resources that have not been listed yet."""
        return sorted(self._unlisted)

    def uid_of_node(self, name: str) -> str:
        """Empty where no such node is known."""
        return self._node_uids.get(name, "")

    def exists(self, node: str) -> bool:
        """Whether the node is known, or has an inventory."""
        return node in self._node_uids or self._ledger.inventory(node) is not None

    async def run(self) -> None:
        """Watch everything until canceled."""
        async with asyncio.TaskGroup() as group:
            for resource in self._handlers:
                watch = partial(self._watch, resource)
                group.create_task(keep_running(f"watch {resource.plural}", watch, self._context.clock, self._set_aside))

    async def run_claims(self) -> None:
        """Watch ResourceClaims until canceled. Nothing waits for their list, which an old API server does not have."""
        self._claims.followed = True
        async for kind, claim in self._context.followed[RESOURCE_CLAIMS].follow(self._context.clock):
            if kind != SYNCED:
                with self._set_aside.around(RESOURCE_CLAIMS.plural, _name(claim)):
                    (self._claims.remove if kind == DELETED else self._claims.observe)(claim)

    async def run_classes(self) -> None:
        """Watch DeviceClasses until canceled."""
        async for kind, found in follow(self._kube, self._context.clock, DEVICE_CLASSES):
            if kind != SYNCED:
                with self._set_aside.around(DEVICE_CLASSES.plural, _name(found)):
                    self._claims.observe_class(found, gone=kind == DELETED)

    async def catch_up(self, node: str) -> None:
        """Read the grants and pods of one node as they are now. Raises Outside."""
        labels = f"{NODE_LABEL}={node}" if len(node) <= MAX_LABEL else ""
        known = self._ledger.records_on(node)
        grants = (await self._kube.list(GRANTS, labels=labels)).items
        pods = (await self._kube.list(PODS, fields=f"spec.nodeName={node}")).items
        self._catch_up(known, grants, pods)

    async def catch_up_namespace(self, namespace: str) -> None:
        """Read the grants and pods of one namespace as they are now. Raises Outside."""
        known = [record for record in self._ledger.records() if record.namespace == namespace]
        grants = (await self._kube.list(GRANTS, namespace=namespace)).items
        pods = (await self._kube.list(PODS, namespace=namespace)).items
        self._catch_up(known, grants, pods)

    def _catch_up(self, known: Iterable[GrantRecord], grants: Sequence[Object], pods: Iterable[Object]) -> None:
        """These grants and pods exist, and of the known grants no others."""
        for grant in grants:
            if self._context.note(GRANTS, grant):
                self._handle(GRANTS, MODIFIED, grant)
        for pod in pods:
            if self._context.note(PODS, pod):
                self._handle(PODS, MODIFIED, self._trim_pod(pod))
        present = {grant["metadata"]["uid"] for grant in grants}
        self._ledger.miss_grants((record for record in known if record.uid not in present), self._context.now())

    async def _watch(self, resource: Resource) -> None:
        async for kind, obj in self._context.followed[resource].follow(self._context.clock):
            if kind == SYNCED:
                self._unlisted.discard(resource.plural)
                if not self._unlisted:
                    self.synced.set()
                continue
            self._handle(resource, kind, obj)
            if resource in (GRANTS, PODS) and kind != DELETED:
                written = obj[_STATE].node if resource is PODS else obj["metadata"]["uid"]
                self.write_barrier.report(resource, _name(obj), written)

    def _handle(self, resource: Resource, kind: str, obj: Object) -> None:
        name = _name(obj)
        try:
            self._handlers[resource](kind, obj)
        except Exception as error:
            if self._set_aside.add(resource.plural, name, error):
                self._report(resource, obj, str(error) or type(error).__name__)
        else:
            self._set_aside.forget(resource.plural, name)

    def _handle_inventory(self, kind: str, obj: Object) -> None:
        name = obj["metadata"]["name"]
        # An inventory that cannot be read offers nothing, whatever an earlier version offered.
        self._inventories.pop(name, None)
        self.inventory_statuses.pop(name, None)
        try:
            if kind != DELETED:
                self.inventory_statuses[name] = obj.get("status") or {}
                self._inventories[name] = read_inventory(obj), confirmed_survivors(obj)
        finally:
            self._update_inventory(name)

    def _update_inventory(self, node: str) -> None:
        """Give the ledger what the node offers, which is nothing while its labels exclude it from Lamina. GPUs that are
        allocated to claims take no grants."""
        found = self._inventories.get(node)
        if found is None or node in self._excluded:
            self._ledger.remove_inventory(node)
        else:
            inventory, confirmed = found
            allocated = self._claims.allocated_on(inventory)
            self._ledger.observe_inventory(self._claims.marked(inventory), confirmed=confirmed, allocated=allocated)

    def _handle_grant(self, kind: str, obj: Object) -> None:
        record = grant_record(obj)
        if kind == DELETED:
            self._ledger.remove_grant(record.uid, record.grant.pod_uid, self._context.now())
        else:
            self._ledger.observe_grant(record)

    def _handle_pod(self, kind: str, obj: Object) -> None:
        uid, state, pod, now = obj["metadata"]["uid"], obj[_STATE], obj[_KIND], self._context.now()
        if kind == DELETED or state.ended or state.node:
            self._context.pending.forget(uid)
        if kind == DELETED:
            self._ledger.remove_pod(uid, now, stopped=obj[_STOPPED])
        else:
            self._ledger.observe_pod(uid, state, now, obj[_RUNNING], stopped=obj[_STOPPED], claims=obj[_CLAIMS])
        if kind == DELETED or state.ended:
            self._host.remove_pod(uid)
        elif state.node and self._host.observe_pod(uid, state.node, pod.size):
            self._request_mix.count_on_node(state.node, pod)
        if kind == ADDED:
            self._request_mix.count(pod)
        if obj[_RESIZED] is not None and kind != DELETED and state.node and not state.ended:
            self.resized_pods[uid] = obj[_RESIZED]
        else:
            self.resized_pods.pop(uid, None)
        if obj[_TICKETS] is not None and kind != DELETED:
            self.ticket_holders[uid] = obj[_TICKETS]
        else:
            self.ticket_holders.pop(uid, None)
        if obj[_LEAVING] and kind != DELETED and state.node and not state.ended:
            self.leaving_pods.add(uid)
        else:
            self.leaving_pods.discard(uid)
        _raise_error_of(obj)

    def _handle_node(self, kind: str, obj: Object) -> None:
        name = obj["metadata"]["name"]
        excluded = kind != DELETED and obj[_EXCLUDED]
        if excluded != (name in self._excluded):
            self._excluded ^= {name}
            self._update_inventory(name)
        if kind != DELETED and obj[_DISCOURAGED]:
            self.discouraged_nodes.add(name)
        else:
            self.discouraged_nodes.discard(name)
        if kind == DELETED:
            self._node_uids.pop(name, None)
            self._host.remove_node(name)
        else:
            self._node_uids[name] = obj["metadata"]["uid"]
            self._host.observe_node(name, obj[_OFFERED])
        _raise_error_of(obj)

    def _handle_quota(self, kind: str, obj: Object) -> None:
        if kind == DELETED:
            self._quotas.remove(obj)
        else:
            self._quotas.observe(obj)

    def _trim_pod(self, obj: Object) -> Object:
        """The part of a pod that is read. A cluster has tens of thousands of pods, and most of each is its spec.

        A pod that cannot be read counts with its grant alone. Its error is raised when it is handled.
        """
        unread: Object = {_STATE: PodState(), _RUNNING: None, _KIND: _UNREADABLE, _STOPPED: False, _RESIZED: None}
        unread[_CLAIMS] = ()
        trimmed: Object = {"metadata": identity(obj), **unread}
        trimmed[_TICKETS] = None
        trimmed[_LEAVING] = bool(obj["metadata"].get("deletionTimestamp"))
        try:
            trimmed |= {_STATE: pod_state(obj), _STOPPED: not runs_containers(obj), _RESIZED: resized_pod(obj)}
            trimmed[_CLAIMS] = claims_of(obj)
            pod = self._context.parse(obj)
            trimmed |= {_RUNNING: running_request(pod), _KIND: pod_kind(pod), _TICKETS: ticket_holder(pod)}
            if trimmed[_STATE].stage is Stage.PENDING and not trimmed[_LEAVING]:
                self._context.pending.observe(pod)
            else:
                self._context.pending.forget(pod.uid)
        except Exception as error:
            trimmed[_ERROR] = error
            self._context.pending.unread(obj["metadata"].get("uid"))
        return trimmed


def _trim_node(node: Object) -> Object:
    """The part of a node that is read. Kubelet updates its status often, and what it offers seldom changes.

    A node that cannot be read offers nothing. Its error is raised when it is handled.
    """
    trimmed: Object = {"metadata": identity(node), _EXCLUDED: True, _OFFERED: HostSize(), _DISCOURAGED: False}
    try:
        trimmed |= {_EXCLUDED: kept_out(node["metadata"].get("labels")), _OFFERED: offered_by(node)}
        trimmed[_DISCOURAGED] = is_discouraged(node)
    except Exception as error:
        trimmed[_ERROR] = error
    return trimmed


def _raise_error_of(obj: Object) -> None:
    """Raise what went wrong when the object was trimmed, once."""
    error = obj.pop(_ERROR, None)
    if error is not None:
        raise error


def _name(obj: Object) -> str:
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _keep(obj: Object) -> Object:
    return obj
