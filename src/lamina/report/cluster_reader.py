"""One reading of a cluster's API, as a view.

It needs read access only. `lamina why` and `lamina fits` also read what the nodes are like. The page of `lamina
dashboard` reads all objects again after each change, so what was read of an object is kept.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from lamina import configuration
from lamina.config_source.live import config_map_object, configured_by
from lamina.configuration import Config
from lamina.core.gpus import Inventory
from lamina.core.objects import confirmed_survivors, read_inventory
from lamina.dialects import resource_names
from lamina.dialects.native_devices import native_resources
from lamina.errors import BadInput
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.ledger import Ledger
from lamina.ledger.observed_claims import ObservedClaims
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.pod_stages import PodState, Stage, pod_state
from lamina.ledger.pods import ParsedPod, parse_pod
from lamina.ledger.quotas import ResourceQuotas
from lamina.ledger.ungranted_pods import RunningRequest, running_request
from lamina.ledger.used_claims import ClaimName, claims_of
from lamina.placement import Hosts
from lamina.ports.kube import (
    GRANTS,
    INVENTORIES,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
    Kube,
    NotFound,
    Object,
    Refused,
)
from lamina.report.cluster_view import ClusterView
from lamina.report.holds import RoomOfNode, count_holds, read_holds
from lamina.report.pod_claims import IMPLICIT, NO_CLAIMS, ClaimObjects, PodClaims, read_claims
from lamina.report.waiting_groups import Needed, read_waiting

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class ClusterObjects(NamedTuple):
    """What a view is computed from, as the API has it. `config_map` is None where there is none, `nodes` where they
    were not read."""

    inventories: list[Object]
    grants: list[Object]
    pods: list[Object]
    quotas: list[Object]
    config_map: Object | None = None
    nodes: list[Object] | None = None
    claims: ClaimObjects = NO_CLAIMS
    needed: Needed = MappingProxyType({})


NOT_INSTALLED = "Lamina is not installed in this cluster: inventories.lamina.dev does not exist; see `lamina install`"


async def read(kube: Kube, *, hosts: bool = False, claims: bool = False, groups: bool = False) -> ClusterView:
    """Read all of it, the nodes themselves only with `hosts` and where that is allowed, and what ResourceClaims are
    read from only with `claims`. With `groups`, also the pod groups of pods that wait, as far as they may be read.

    Raises BadInput where Lamina is not installed.
    """
    return view_of(await read_objects(kube, hosts=hosts, claims=claims, groups=groups))


async def read_objects(
    kube: Kube, *, hosts: bool = False, claims: bool = False, groups: bool = False
) -> ClusterObjects:
    """What `read` computes its view from, for callers that do so in a thread: of 10,000 pods it takes seconds."""
    config_map = await config_map_object(kube)
    try:
        inventories = (await kube.list(INVENTORIES)).items
        grants = (await kube.list(GRANTS)).items
    except NotFound as error:
        raise BadInput(NOT_INSTALLED) from error
    pods = (await kube.list(PODS)).items
    quotas = (await kube.list(RESOURCE_QUOTAS)).items
    nodes = await _nodes(kube) if hosts else None
    claimed = await read_claims(kube) if claims else NO_CLAIMS
    needed = await read_waiting(kube, pods) if groups else {}
    return ClusterObjects(inventories, grants, pods, quotas, config_map, nodes, claimed, needed)


async def _nodes(kube: Kube) -> list[Object] | None:
    try:
        return (await kube.list(NODES)).items
    except Refused:
        return None


def view_of(objects: ClusterObjects) -> ClusterView:
    """The view of these objects. What cannot be read is left out and logged."""
    return ClusterReader().view_of(objects)


class ParseCache(Generic[_T]):
    """Reads each object once. It stays read while it is the same Python object, so objects that change have to be
    replaced by others."""

    def __init__(self, read: Callable[[Object], _T]) -> None:
        self._read = read
        self._known: dict[int, tuple[Object, _T]] = {}

    def all(self, objects: Iterable[Object]) -> list[_T]:
        """What is read of each, in their order. Objects that are not among them are forgotten."""
        before, self._known = self._known, {}
        for obj in objects:
            self._known[id(obj)] = before.get(id(obj)) or (obj, self._read(obj))
        return [read for _, read in self._known.values()]


class _ReadInventory(NamedTuple):
    inventory: Inventory
    confirmed: tuple[str, ...]


class _ReadPod(NamedTuple):
    uid: str
    parsed: ParsedPod
    state: PodState
    running: RunningRequest | None
    claims: frozenset[ClaimName]


class ClusterReader:
    """Makes views of one cluster, and reads only objects that the view before did not have."""

    def __init__(self) -> None:
        self._inventories = ParseCache(partial(_readable, _read_inventory))
        self._grants = ParseCache(partial(_readable, grant_record))
        self._config = configuration.DEFAULT
        self._pods = ParseCache(self._pod)

    def view_of(self, objects: ClusterObjects) -> ClusterView:
        """The view of these objects. What cannot be read is left out and logged."""
        configured = configured_by(objects.config_map)
        if configured.config != self._config:
            self._config, self._pods = configured.config, ParseCache(self._pod)
        inventories = [each for each in self._inventories.all(objects.inventories) if each is not None]
        records = [each for each in self._grants.all(objects.grants) if each is not None]
        pods = [each for each in self._pods.all(objects.pods) if each is not None]
        granted = {record.grant.pod_uid for record in records}
        waiting = {each.uid for each in pods if each.state.stage is Stage.PENDING} - granted
        holds = tuple(each for each in read_holds(objects.inventories, time.time()) if each.room.pod_uid in waiting)
        claims = PodClaims(objects.claims)
        ledger, quotas = _ledger(inventories, claims.observed, pods, records, holds), ResourceQuotas()
        for quota in objects.quotas:
            quotas.observe(quota)
        return ClusterView(
            config=configured.config,
            pods=[each.parsed.obj for each in pods],
            grants={record.grant.pod_uid: record.grant for record in records},
            inventories={node: found for node in ledger.nodes() if (found := ledger.inventory(node)) is not None},
            ledger=ledger,
            holds=holds,
            quotas=quotas,
            hosts=None if objects.nodes is None else _hosts(objects.nodes, objects.pods, configured.config),
            config_refusal=configured.refusal,
            claims=claims,
            needed=objects.needed,
            parsed={id(each.parsed.obj): each.parsed for each in pods},
        )

    def _pod(self, pod: Object) -> _ReadPod | None:
        """What can be read of the pod. One that cannot be read must not hide the others."""
        metadata = pod["metadata"]
        try:
            parsed = parse_pod(pod, self._config)
            return _ReadPod(metadata["uid"], parsed, pod_state(pod), running_request(parsed), claims_of(pod))
        except Exception as error:
            log.warning("pod %s/%s cannot be read: %r", metadata.get("namespace"), metadata.get("name"), error)
            return None


def _read_inventory(obj: Object) -> _ReadInventory:
    return _ReadInventory(read_inventory(obj), confirmed_survivors(obj))


def _ledger(
    inventories: list[_ReadInventory],
    claims: ObservedClaims,
    pods: list[_ReadPod],
    records: list[GrantRecord],
    holds: Iterable[RoomOfNode],
) -> Ledger:
    ledger = Ledger()
    now = time.monotonic()
    for inventory, confirmed in inventories:
        allocated = claims.allocated_on(inventory)
        ledger.observe_inventory(claims.marked(inventory), confirmed=confirmed, allocated=allocated)
    for pod in pods:
        ledger.observe_pod(pod.uid, pod.state, now, pod.running, claims=pod.claims)
    alive = {pod.uid for pod in pods}
    for record in records:
        if record.grant.pod_uid in alive:
            ledger.observe_grant(record)
    leaving = {pod.uid for pod in pods if pod.parsed.metadata.get("deletionTimestamp")}
    count_holds(ledger, holds, leaving)
    return ledger


def _hosts(nodes: list[Object], pods: list[Object], config: Config) -> Hosts:
    """The nodes themselves, without resources that Lamina counts, or that inventories have the count of."""
    names = {name for each in resource_names(config) for name in each.all}
    return Hosts(
        nodes,
        pods,
        lambda resource: resource in names or bool(native_resources([resource])) or resource.startswith(IMPLICIT),
    )


def _readable(read: Callable[[Object], _T], item: Object) -> _T | None:
    return next(readable(read, [item]), None)


def readable(read: Callable[[Object], _T], items: list[Object]) -> Iterator[_T]:
    """The objects that can be read. Logs why the others are left out."""
    for item in items:
        try:
            yield read(item)
        except BadInput as problem:
            log.warning("%s", problem)
