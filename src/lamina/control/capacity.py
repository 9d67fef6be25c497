"""Nodes as placement sees them, kept ready: worked out when the ledger or the configuration has changed a node."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence, Set

from lamina.control.arrivals import Arrivals
from lamina.control.configuration import Configuration
from lamina.control.host_room import HostRoom
from lamina.control.ledger import Ledger
from lamina.model.gpus import Inventory
from lamina.model.ledger import NOTHING, Taken, taken_by
from lamina.model.requests import PodRequest
from lamina.placement import NodeState, NodeTable, Placement, Survey, alike, fit

_SURVEYS = 128
"""Kinds of pods whose answers are kept; the one asked for longest ago goes first."""


class Capacity:
    """The free capacity of each node, from the ledger's sums; beside it what is free of hosts, and which pods come."""

    def __init__(self, configuration: Configuration) -> None:
        self.ledger = Ledger(changed=self._forget)
        self.host = HostRoom()
        self.arrivals = Arrivals()
        self._configuration = configuration
        self._table = NodeTable()
        self._changed: set[str] = set()
        self._surveys: OrderedDict[PodRequest, Survey] = OrderedDict()
        configuration.listeners.append(self._forget_all)

    @property
    def table(self) -> NodeTable:
        """All nodes with an inventory, as a pod finds them that holds nothing."""
        while self._changed:
            node = self._changed.pop()
            state = self._worked_out(node, "")
            if state is None:
                self._table.drop(node)
            else:
                self._table.put(state)
        return self._table

    def survey(self, request: PodRequest) -> Survey:
        """Where such a pod fits, if it holds nothing."""
        kind, table = alike(request), self.table
        survey = self._surveys.pop(kind, None) or Survey(kind, table)
        self._surveys[kind] = survey
        if len(self._surveys) > _SURVEYS:
            self._surveys.popitem(last=False)
        survey.refresh()
        return survey

    def state(self, node: str, *, without: str) -> NodeState | None:
        """The node with what is free for the pod with the UID `without`, or None where it offers no GPUs."""
        if self.ledger.holds(without, node):
            return self._worked_out(node, without)
        return self.table.state(node)

    def fit_without(self, node: str, requests: Sequence[PodRequest], pods: Set[str]) -> bool:
        """Whether pods with these requests would all fit the node if those with these UIDs held nothing."""
        inventory = self.ledger.inventory(node)
        if inventory is None:
            return False
        taken = dict(self.ledger.taken_without(node, pods))
        for request in requests:
            answer = fit(request, self.seen(node, inventory, taken))
            if not isinstance(answer, Placement):
                return False
            for gpu, more in taken_by(answer.containers).items():
                taken[gpu] = taken.get(gpu, NOTHING).plus(more)
        return True

    def _worked_out(self, node: str, without: str) -> NodeState | None:
        inventory = self.ledger.inventory(node)
        if inventory is None:
            return None
        return self.seen(node, inventory, self.ledger.taken(node, without=without))

    def seen(self, node: str, inventory: Inventory, taken: Mapping[str, Taken]) -> NodeState:
        """The node as placement sees it, under the configuration, with this taken of its GPUs."""
        config = self._configuration.value
        level = config.for_node(node).log_level
        return NodeState.of(node, inventory, taken, log_level=level, rules=config.mig_rules)

    def _forget(self, node: str) -> None:
        self._changed.add(node)

    def _forget_all(self) -> None:
        self._changed.update(self.ledger.nodes())
