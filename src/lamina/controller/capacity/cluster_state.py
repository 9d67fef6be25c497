"""The state of each node as placement reads it, computed again only after the ledger or configuration changed it."""

import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence, Set

from lamina.config_source.live import LiveConfiguration
from lamina.controller.capacity.host_capacity import HostCapacity
from lamina.controller.capacity.request_mix import RequestMix
from lamina.core.gpus import Inventory
from lamina.core.ledger import Taken, add, taken_by
from lamina.core.requests import PodRequest
from lamina.ledger.ledger import Ledger
from lamina.ledger.observed_claims import ObservedClaims
from lamina.placement import NodeState, NodeTable, PodPlacement, Survey, alike, fit
from lamina.ports.set_aside import SetAside

log = logging.getLogger(__name__)

_MAX_SURVEYS = 128
"""How many kinds of pods have a cached survey; the one used longest ago is dropped first."""


class ClusterState:
    """The free GPU capacity of each node, from the ledger's sums, next to `host`, `request_mix` and `claims`.

    Nothing is placed on a node whose state cannot be computed: it is in `set_aside`, as everything else that this
    replica cannot use.
    """

    def __init__(
        self,
        configuration: LiveConfiguration,
        set_aside: SetAside | None = None,
        claims: ObservedClaims | None = None,
    ) -> None:
        self.claims = claims or ObservedClaims()
        self.set_aside = set_aside or SetAside(log)
        self.ledger = Ledger(changed=self._mark_changed)
        self.host = HostCapacity()
        self.request_mix = RequestMix()
        self._configuration = configuration
        self._table = NodeTable()
        self._changed: set[str] = set()
        self._surveys: OrderedDict[PodRequest, Survey] = OrderedDict()
        configuration.listeners.append(self._mark_all_changed)

    @property
    def table(self) -> NodeTable:
        """All nodes with an inventory, in the state in which a pod that holds nothing finds them."""
        while self._changed:
            self._update_row(self._changed.pop())
        return self._table

    def survey(self, request: PodRequest) -> Survey:
        """Where a pod with this request fits, if it holds nothing."""
        kind, table = alike(request), self.table
        survey = self._surveys.pop(kind, None) or Survey(kind, table)
        self._surveys[kind] = survey
        if len(self._surveys) > _MAX_SURVEYS:
            self._surveys.popitem(last=False)
        survey.refresh()
        return survey

    def state(self, node: str, *, without: str) -> NodeState | None:
        """The node as the pod with the UID `without` finds it, or None where the node offers no GPUs."""
        if self.ledger.totals.holds(without, node):
            return self._compute_state(node, without)
        return self.table.state(node)

    def fits_without(self, node: str, requests: Sequence[PodRequest], pods: Set[str]) -> bool:
        """Whether pods with these requests would all fit the node if the pods with these UIDs held nothing."""
        places = self.places_without(node, requests, pods)
        return self.ledger.inventory(node) is not None and all(place is not None for place in places)

    def places_without(
        self, node: str, requests: Sequence[PodRequest], pods: Set[str]
    ) -> Iterator[Mapping[str, Taken] | None]:
        """What pods with these requests would take of the node's GPUs one after the other, if the pods with these UIDs
        held nothing; None for each that does not fit."""
        inventory = self.ledger.inventory(node)
        taken = dict(self.ledger.totals.taken_without_pods(node, pods))
        for request in requests:
            placement = fit(request, self.state_with(node, inventory, taken)) if inventory else None
            if not isinstance(placement, PodPlacement):
                yield None
                continue
            place = taken_by(placement.containers)
            add(taken, place)
            yield place

    def fits_empty(self, node: str, request: PodRequest) -> bool:
        """Whether a pod with this request would fit the node if no other pod were there."""
        return self.fits_without(node, [request], frozenset(self.ledger.totals.pods_on(node)))

    def state_with(self, node: str, inventory: Inventory, taken: Mapping[str, Taken]) -> NodeState:
        """The state of the node under the configuration in force, with this much taken of its GPUs."""
        config = self._configuration.value
        level = config.for_node(node).log_level
        allocated = self.ledger.allocated_on(node)
        return NodeState.of(node, inventory, taken, log_level=level, rules=config.mig_rules, allocated=allocated)

    def _update_row(self, node: str) -> None:
        try:
            state = self._compute_state(node, "")
            if state is not None:
                self._table.put(state)
        except Exception as error:
            self.set_aside.add("node state", node, error)
            state = None
        else:
            self.set_aside.forget("node state", node)
        if state is None:
            self._table.drop(node)

    def _compute_state(self, node: str, without: str) -> NodeState | None:
        inventory = self.ledger.inventory(node)
        if inventory is None:
            return None
        return self.state_with(node, inventory, self.ledger.totals.taken(node, without=without))

    def _mark_changed(self, node: str) -> None:
        self._changed.add(node)

    def _mark_all_changed(self) -> None:
        self._changed.update(self.ledger.nodes())
