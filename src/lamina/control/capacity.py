"""Nodes as placement sees them, kept ready: worked out when the ledger or the configuration has changed a node."""

from lamina.control.configuration import Configuration
from lamina.control.ledger import Ledger
from lamina.placement import NodeState


class Capacity:
    """The free capacity of each node, from the ledger's sums."""

    def __init__(self, configuration: Configuration) -> None:
        self.ledger = Ledger(changed=self._forget)
        self._configuration = configuration
        self._states: dict[str, NodeState] = {}
        configuration.listeners.append(self._states.clear)

    def state(self, node: str, *, without: str) -> NodeState | None:
        """The node with what is free for the pod with the UID `without`, or None where it offers no GPUs."""
        if self.ledger.holds(without, node):
            return self._worked_out(node, without)
        state = self._states.get(node)
        if state is None:
            state = self._worked_out(node, "")
            if state is not None:
                self._states[node] = state
        return state

    def _worked_out(self, node: str, without: str) -> NodeState | None:
        inventory = self.ledger.inventory(node)
        if inventory is None:
            return None
        level = self._configuration.value.for_node(node).log_level
        return NodeState.of(node, inventory, self.ledger.taken(node, without=without), log_level=level)

    def _forget(self, node: str) -> None:
        self._states.pop(node, None)
