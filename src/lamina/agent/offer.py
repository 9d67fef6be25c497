"""What the node offers at the moment: its inventory for the cluster, its tickets for kubelet.

Both follow from the same four things: what NVML knows, the configuration, whether the node's labels select it, and
which tickets are in containers' hands. Until all are known the node offers nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Set

from msgspec import structs

from lamina.agent.current import Current
from lamina.agent.health import GpuState
from lamina.agent.inventory import inventory, nothing
from lamina.agent.tickets import Kind, Ticket, tickets
from lamina.dialects.config import NodeSettings
from lamina.model.gpus import Inventory


class Offer:
    """`inventory` is None until it is known; each change of it or of `tickets` wakes who waits for it."""

    def __init__(
        self,
        node: str,
        settings: NodeSettings,
        kinds: Iterable[Kind],
        *,
        selected: bool,
        held: Callable[[], Set[str]] = frozenset,
        cordoned: Set[str] | None = frozenset(),
    ) -> None:
        """`held` tells the tickets that are in containers' hands. While `cordoned` is None, nobody knows yet which GPUs
        are cordoned, and nothing is published."""
        self._node = node
        self._settings = settings
        self._selected = selected
        self._held = held
        self._cordoned = cordoned
        self._driver: str | None = None
        self._states: tuple[GpuState, ...] = ()
        self._enforced: tuple[str, ...] = ()
        self.inventory: Current[Inventory | None] = Current(None)
        self.tickets: dict[Kind, Current[tuple[Ticket, ...]]] = {kind: Current(()) for kind in kinds}

    @property
    def driver(self) -> str:
        """The driver's version; empty while NVML never answered."""
        return self._driver or ""

    @property
    def gpus(self) -> Mapping[str, GpuState]:
        """The node's GPUs by UUID, offered or not."""
        return {state.facts.uuid: state for state in self._states}

    def observed(self, driver: str, states: tuple[GpuState, ...]) -> None:
        """NVML was asked."""
        self._driver, self._states = driver, states
        self._refresh()

    def select(self, selected: bool) -> None:
        """The node's labels say that it is to offer its GPUs, or not."""
        self._selected = selected
        self._refresh()

    def cordon(self, uuids: Set[str]) -> None:
        """The node names these GPUs as not to be given to anybody new."""
        self._cordoned = frozenset(uuids)
        self._refresh()

    def enforced(self, containers: tuple[str, ...]) -> None:
        """The driver itself limits these containers."""
        self._enforced = containers
        self._refresh()

    def undivided(self) -> tuple[str, ...]:
        """The UUIDs of the GPUs that are not cut by MIG, whose memory the driver may limit."""
        return tuple(state.facts.uuid for state in self._states if not state.facts.mig_enabled)

    def _refresh(self) -> None:
        if self._driver is None:
            return
        offered = nothing(self._node, self._driver)
        if self._selected:
            offered = inventory(self._node, self._driver, self._states, self._settings, self._cordoned or frozenset())
        if self._cordoned is not None:
            self.inventory.set(structs.replace(offered, driver_held=self._enforced))
        for kind, current in self.tickets.items():
            current.set(tickets(kind, offered.gpus, held=self._held(), before=current.value))
