"""A cluster from one reading of its API: pods, grants, and what is free on each node.

`lamina pods` and `lamina why` compute the same sums with the same code as the controller, so that explanation and
decision agree. They need read access only. `lamina why` and `lamina fits` also read what the nodes are like.
"""

import logging
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple, TypeVar

import msgspec

from lamina import configuration
from lamina.configuration import CONFIG_MAP, CONFIG_MAP_NAMESPACE, Config
from lamina.configuration.config_map import TextInForce, in_force
from lamina.core.gpus import Inventory
from lamina.core.grants import Grant
from lamina.core.objects import confirmed_survivors, read_inventory
from lamina.core.requests import PodRequest
from lamina.core.survivors import Survivor
from lamina.dialects import resource_names
from lamina.dialects.native_devices import native_resources
from lamina.errors import BadInput
from lamina.ledger.claim_usage import ClaimUsage
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.ledger import Ledger
from lamina.ledger.observed_claims import ObservedClaims
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.pod_rules import PodRules
from lamina.ledger.pod_stages import PodState, Stage, pod_state
from lamina.ledger.pods import ParsedPod, parse_pod
from lamina.ledger.quotas import ResourceQuotas
from lamina.ledger.ticket_holders import ticket_holder, without_grant
from lamina.ledger.ungranted_pods import RunningRequest, running_request
from lamina.ledger.used_claims import ClaimName, claims_of
from lamina.placement import Cause, Explanation, HostRefusal, Hosts, Miss, NodeState, explain, explain_counted
from lamina.ports.kube import (
    CONFIG_MAPS,
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
from lamina.report import claim_shares
from lamina.report.claim_quotas import NOT_CHECKED, WaitingForQuotas, waits_for_check
from lamina.report.holds import RoomOfNode, count_holds, hold_lines, read_holds
from lamina.report.native_capacity import counted, forbidden, missing
from lamina.report.parse_cache import ParseCache
from lamina.report.pod_claims import IMPLICIT, NO_CLAIMS, ClaimObjects, PodClaims, read_claims
from lamina.report.taken_tickets import TakenTickets

log = logging.getLogger(__name__)

NO_DEVICES = Miss("it offers no devices to claims", Cause.NO_GPU, True, (int(Cause.NO_GPU), 0, 0.0))
"""What a node lacks for every claim whose agent serves none."""

_T = TypeVar("_T")


@dataclass
class ClusterView:
    """`grants` are keyed by the UID of their pod, `inventories` by node."""

    config: Config
    pods: list[Object]
    grants: Mapping[str, Grant]
    inventories: Mapping[str, Inventory]
    ledger: Ledger
    quotas: ResourceQuotas = field(default_factory=ResourceQuotas)
    hosts: Hosts | None = None
    """The nodes themselves; None where they were not read, so that only GPUs count."""
    holds: tuple[RoomOfNode, ...] = ()
    """Room that is kept for pods that are not bound yet. The ledger counts it."""
    config_refusal: str = ""
    """Why the text in the ConfigMap is refused; `config` is then the configuration in force."""
    claims: PodClaims = field(default_factory=PodClaims, repr=False)
    """By which pods request GPUs."""
    _explained: dict[tuple[Hashable, ...], Explanation] = field(default_factory=dict, repr=False)
    """By request, counted native devices, of which a request has the names alone, why a quota forbids them, claims, and
    what decides on which nodes kube-scheduler allows the pod."""

    parsed: Mapping[int, ParsedPod] = field(default_factory=dict, repr=False)
    """Pods that have been parsed, by the `id` of their objects."""

    def parse(self, pod: Object) -> ParsedPod:
        """The pod with its request."""
        known = self.parsed.get(id(pod))
        return known if known is not None and known.obj is pod else parse_pod(pod, self.config)

    def request(self, pod: Object) -> PodRequest | None:
        """What the pod requests of GPUs, None if nothing. Raises BadInput as admission does."""
        parsed = self.parse(pod)
        if parsed.problem:
            raise BadInput(parsed.problem)
        return parsed.request

    def bounded(self, pod: Object) -> PodRequest | None:
        """The request within what quotas leave. Raises BadInput as admission does."""
        request = self.request(pod)
        return None if request is None else self.rules.bounded(self.parse(pod), request)

    @property
    def rules(self) -> PodRules:
        """What holds for a pod on every node, as the controller asks it."""
        return PodRules(self.ledger, self.quotas, self.claims.observed)

    @cached_property
    def claim_quotas(self) -> WaitingForQuotas:
        """Which claims exceed a quota."""
        return WaitingForQuotas(
            ClaimUsage(self.ledger, self.quotas, self.claims.observed, lambda: self.config), self.pods
        )

    def not_placed(self, pod: Object) -> str:
        """Why no scheduler places the pod, or Lamina does not, in words that follow its name; else empty."""
        parsed = self.parse(pod)
        if waits_for_check(pod):
            problem = self.claims.problem(pod)
            return self.claim_quotas.waits(pod) or (f"is pending: {problem}" if problem else NOT_CHECKED)
        return parsed.not_placed or (parsed.held_back if self.claims.of(pod) else "")

    def refused_everywhere(self, pod: Object) -> str:
        """Why no node may take the pod, whatever nodes there are, as a sentence, or nothing."""
        not_placed = self.not_placed(pod)
        refusal = f"the pod {not_placed}" if not_placed else self.rules.refused_everywhere(self.parse(pod))
        return refusal or self.claims.problem(pod)

    def explain(self, pod: Object) -> Explanation | None:
        """Where the pod fits and why not elsewhere; None if it requests no GPU. Raises BadInput as admission does."""
        request, claims = self.bounded(pod), self.claims.of(pod)
        if request is None and not claims:
            return None
        uid = pod["metadata"]["uid"]
        if request is not None and (self.ledger.grants_of(uid) or self.ledger.hold_of(uid)):
            lacking = self.lacking(pod, request)
            return explain(request, [self.node(name, without=uid) for name in sorted(self.inventories)], lacking)
        # Pending replicas request the same of the same nodes, so one search serves all of them.
        template = self.parse(pod).template if self.hosts is not None else b""
        devices = counted(pod)
        uncounted = self._uncounted(pod, devices if request is None else request.native_devices)
        wanted = tuple((each.wanted, each.node) for each in claims)
        key = request, frozenset(devices.items()), uncounted, wanted, template
        if key not in self._explained:
            lacking = self.lacking(pod, request)
            if request is None:
                self._explained[key] = explain_counted(lacking)
            else:
                self._explained[key] = explain(request, self.nodes, lacking)
        return self._explained[key]

    def lacking(self, pod: Object, request: PodRequest | None) -> dict[str, Miss | None]:
        """Why nodes do not fit, whatever is free of their GPUs. None for nodes with enough native devices."""
        lacking = self.lacking_gpus(pod, request)
        for name in list(lacking) if request is None else self.inventories:
            if self.hosts is not None and (miss := self.hosts.miss(pod, name)) is not None:
                lacking[name] = miss
        if request is not None:
            lacking = {**self.taken_tickets.misses(pod, request), **lacking}
        return lacking

    def lacking_devices(self, pod: Object, request: PodRequest | None) -> dict[str, Miss | None]:
        """What nodes lack that offer all native resources of the pod, which it counts; None if there is enough."""
        resources: Collection[str] = counted(pod) if request is None else request.native_devices
        uncounted = self._uncounted(pod, resources)
        lacking = {
            name: forbidden(uncounted) if uncounted else missing(pod, inventory, self.pods)
            for name, inventory in self.inventories.items()
            if inventory.offers_native_devices(resources)
        }
        if request is None or not request.only_native_reason:
            return lacking
        return dict.fromkeys(self.inventories, forbidden(request.only_native_reason)) | lacking

    def lacking_gpus(self, pod: Object, request: PodRequest | None) -> dict[str, Miss | None]:
        """What nodes lack of native devices and for claims, which kube-scheduler decides; None for those with enough of
        all that the pod requests."""
        lacking = self.lacking_devices(pod, request)
        if not self.claims.of(pod):
            return lacking
        misses = dict.fromkeys(self.inventories, None if self.claims.unread else NO_DEVICES) | self.claims.misses(pod)
        if request is not None:
            return lacking | {name: misses[name] for name in self.inventories if misses[name] is not None}
        return {name: misses[name] or miss for name, miss in lacking.items()} if counted(pod) else misses

    def host_refusals(self, pod: Object, node: str) -> tuple[HostRefusal, ...]:
        """All that keeps the pod from the node, whatever is free of its GPUs."""
        return () if self.hosts is None else self.hosts.refusals(pod, node)

    def _uncounted(self, pod: Object, resources: Collection[str]) -> str:
        return self.quotas.uncounted(pod["metadata"]["namespace"], resources, self.config)

    def survivors(self, namespace: str | None = None) -> Iterator[tuple[str, Survivor]]:
        """The pods, in one namespace or in all (None), that have ended while their processes run, each with its node.

        A pod that Kubernetes still lists as running counts by its grant, and one of which only an agent says that it
        was there counts in no namespace.
        """
        yield from (each for each in self._survivors if namespace in (None, each[1].namespace))

    @cached_property
    def _survivors(self) -> list[tuple[str, Survivor]]:
        return [(node, each) for node in sorted(self.inventories) for each in self.ledger.survivors(node)]

    @cached_property
    def taken_tickets(self) -> TakenTickets:
        """The tickets that pods without a grant have."""
        parsed = map(self.parse, self.pods)
        holders = (holder for pod in parsed if (holder := ticket_holder(pod)) is not None)
        granted, nodes = self.grants.__contains__, self.inventories
        taken = [(each, without_grant(each, nodes.get(each.node), granted)) for each in holders]
        found = [(holder, tickets) for holder, tickets in taken if tickets and self.config.enabled]
        return TakenTickets(found, self.pods, self.inventories, self.hosts, self.config)

    @cached_property
    def hold_lines(self) -> tuple[str, ...]:
        """What room is kept for pods that are not bound yet, in sentences."""
        indices = {gpu.uuid: str(gpu.index) for each in self.inventories.values() for gpu in each.gpus}
        shown = [
            each._replace(room=msgspec.structs.replace(each.room, gpu=indices.get(each.room.gpu, each.room.gpu)))
            for each in self.holds
        ]
        return tuple(hold_lines(shown, {pod["metadata"]["uid"]: pod for pod in self.pods}))

    @cached_property
    def claim_lines(self) -> tuple[str, ...]:
        """The GPUs that take no shares because ResourceClaims have them, in sentences."""
        return tuple(claim_shares.lines(self.inventories, ", which takes no shares meanwhile"))

    @cached_property
    def lines_for_claims(self) -> tuple[str, ...]:
        """What ResourceClaims hold, and the GPUs that they do not get because of grants, in sentences."""
        granted = claim_shares.granted_lines(self.inventories, self.ledger.totals.taken)
        return (*claim_shares.lines(self.inventories), *granted)

    @cached_property
    def nodes(self) -> list[NodeState]:
        """All nodes, for a pod that holds nothing."""
        return [self.node(name) for name in sorted(self.inventories)]

    def node(self, name: str, *, without: str = "") -> NodeState:
        """The node as it is now, without what the pod with the UID `without` holds."""
        taken = self.ledger.totals.taken(name, without=without)
        return NodeState.of(
            name,
            self.inventories[name],
            taken,
            rules=self.config.mig_rules,
            allocated=self.ledger.allocated_on(name),
        )


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


NOT_INSTALLED = "Lamina is not installed in this cluster: inventories.lamina.dev does not exist; see `lamina install`"


async def read(kube: Kube, *, hosts: bool = False, claims: bool = False) -> ClusterView:
    """Read all of it, the nodes themselves only with `hosts` and where that is allowed, and what ResourceClaims are
    read from only with `claims`.

    Raises BadInput where Lamina is not installed.
    """
    config_map = await _config_map(kube)
    try:
        inventories = (await kube.list(INVENTORIES)).items
        grants = (await kube.list(GRANTS)).items
    except NotFound as error:
        raise BadInput(NOT_INSTALLED) from error
    pods = (await kube.list(PODS)).items
    quotas = (await kube.list(RESOURCE_QUOTAS)).items
    nodes = await _nodes(kube) if hosts else None
    claimed = await read_claims(kube) if claims else NO_CLAIMS
    return view_of(ClusterObjects(inventories, grants, pods, quotas, config_map, nodes, claimed))


async def _nodes(kube: Kube) -> list[Object] | None:
    try:
        return (await kube.list(NODES)).items
    except Refused:
        return None


def view_of(objects: ClusterObjects) -> ClusterView:
    """The view of these objects. What cannot be read is left out and logged."""
    return ClusterReader().view_of(objects)


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


async def text_in_force(kube: Kube) -> TextInForce:
    """The cluster's configuration; the default where there is no ConfigMap."""
    return configured_by(await _config_map(kube))


def configured_by(config_map: Object | None) -> TextInForce:
    """The configuration in force with this ConfigMap, or without one."""
    return TextInForce("", configuration.DEFAULT) if config_map is None else in_force(config_map)


async def _config_map(kube: Kube) -> Object | None:
    try:
        return await kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=CONFIG_MAP_NAMESPACE)
    except NotFound:
        return None


def _readable(read: Callable[[Object], _T], item: Object) -> _T | None:
    return next(readable(read, [item]), None)


def readable(read: Callable[[Object], _T], items: list[Object]) -> Iterator[_T]:
    """The objects that can be read. Logs why the others are left out."""
    for item in items:
        try:
            yield read(item)
        except BadInput as problem:
            log.warning("%s", problem)
