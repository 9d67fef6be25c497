"""A cluster at one moment: pods, grants, and what is free on each node, with the answers that all views share.

Sums and rules are those of the controller, so that explanation and decision agree.
"""

import time
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from lamina.configuration import Config
from lamina.core.gpus import Inventory
from lamina.core.grants import Grant
from lamina.core.ledger import Taken
from lamina.core.requests import PodRequest
from lamina.core.survivors import Survivor
from lamina.errors import BadInput
from lamina.group_plans import PlanBasis
from lamina.ledger.claim_usage import ClaimUsage
from lamina.ledger.ledger import Ledger
from lamina.ledger.pod_rules import PodRules
from lamina.ledger.pods import ParsedPod, parse_pod
from lamina.ledger.quotas import ResourceQuotas
from lamina.ledger.ticket_holders import ticket_holder, without_grant
from lamina.placement import (
    Cause,
    Explanation,
    HostRefusal,
    Hosts,
    Miss,
    NodeState,
    NodeTable,
    explain,
    explain_counted,
)
from lamina.ports.kube import Object
from lamina.report import claim_shares
from lamina.report.claim_quotas import NOT_CHECKED, WaitingForQuotas, waits_for_check
from lamina.report.holds import RoomOfNode, hold_lines
from lamina.report.native_capacity import counted, forbidden, missing
from lamina.report.pod_claims import PodClaims
from lamina.report.taken_tickets import TakenTickets
from lamina.report.waiting_groups import Needed, WaitingGroups

NO_DEVICES = Miss("it offers no devices to claims", Cause.NO_GPU, True, (int(Cause.NO_GPU), 0, 0.0))
"""What a node lacks for every claim whose agent serves none."""


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
    needed: Needed = field(default_factory=dict)
    """Of pod groups, where they were read."""
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

    def group_refusal(self, pod: Object) -> str:
        """Why the group of a pod that fits alone keeps it waiting, as a sentence, or nothing."""
        explanation = self.explain(pod)
        return "" if explanation is None else self.groups.refusal(self.parse(pod), explanation.fitting)

    @cached_property
    def groups(self) -> WaitingGroups:
        """What keeps pod groups waiting."""
        basis = PlanBasis(self, self.rules, self._fitting, self._closed_to, time.monotonic)
        return WaitingGroups(self.needed, lambda: map(self.parse, self.pods), basis)

    def _fitting(self, pod: ParsedPod, nodes: Iterable[str]) -> list[str]:
        explanation = None if self.refused_everywhere(pod.obj) else self.explain(pod.obj)
        fitting = set() if explanation is None else set(explanation.fitting)
        return [node for node in nodes if node in fitting]

    def _closed_to(self, uids: Set[str], priority: int) -> Set[str]:
        """The nodes where pods are evicted for pods other than these, which have this priority."""
        priorities = {parsed.uid: parsed.priority for parsed in map(self.parse, self.pods)} if self.holds else {}
        return {
            node
            for node, room in self.holds
            if room.nominated and room.pod_uid not in uids and priorities.get(room.pod_uid, priority) >= priority
        }

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
        held = {each.room.pod_uid for each in shown}
        groups = {uid: self.parse(pod).group for pod in self.pods if (uid := pod["metadata"]["uid"]) in held}
        return tuple(hold_lines(shown, groups))

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
        return self.state_with(name, self.inventories[name], self.ledger.totals.taken(name, without=without))

    def state_with(self, node: str, inventory: Inventory, taken: Mapping[str, Taken]) -> NodeState:
        """The node with this much taken of its GPUs."""
        allocated = self.ledger.allocated_on(node)
        return NodeState.of(node, inventory, taken, rules=self.config.mig_rules, allocated=allocated)

    @cached_property
    def table(self) -> NodeTable:
        """All nodes side by side."""
        table = NodeTable()
        for node in self.nodes:
            table.put(node)
        return table
