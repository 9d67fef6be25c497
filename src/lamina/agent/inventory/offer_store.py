"""What the node offers now, for everyone who waits for changes: the publisher and the device plugins."""

from collections.abc import Callable, Mapping, Set
from typing import Any

from msgspec import structs

from lamina.agent.inventory.native_devices import NativeKind
from lamina.agent.inventory.reducer import Devices, OfferState, advertise, no_offer
from lamina.agent.inventory.tickets import TicketKind
from lamina.agent.inventory.usage import DevicesInUse
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.observed import Observable
from lamina.core.gpus import Inventory
from lamina.core.mps import MpsDaemon
from lamina.core.quantities import MIB


class NodeOfferStore:
    """Follows the node's state. `inventory` is None until all that decides it is known."""

    def __init__(self, state: OfferState, in_use: Callable[[], DevicesInUse] = DevicesInUse) -> None:
        """`in_use` returns the devices that containers have at the moment."""
        self.state = state
        self._in_use = in_use
        self._advertised = no_offer(state)
        self.inventory: Observable[Inventory | None] = Observable(None)
        self.looked_at: float | None = None
        """When the driver was last asked for the node's GPUs, in seconds since 1970; None before the first time."""
        self.tickets: dict[TicketKind, Observable[Devices]] = {kind: Observable(()) for kind in state.ticket_kinds}
        self.native: dict[NativeKind, Observable[Devices]] = {kind: Observable(()) for kind in state.native_kinds}
        self.mig: Observable[Mapping[NativeKind, Devices]] = Observable({})

    def update(self, **changes: Any) -> None:
        """Change fields of the state, and advertise what follows from them and from the devices in use now."""
        self.state = structs.replace(self.state, **changes)
        self._advertised = advertise(self.state, self.in_use, self._advertised)
        for native_kind, devices in self._advertised.native.items():
            self.native[native_kind].set(devices)
        for ticket_kind, devices in self._advertised.tickets.items():
            self.tickets[ticket_kind].set(devices)
        self.mig.set(self._advertised.mig)
        if self._advertised.inventory is not None:
            self.inventory.set(self._advertised.inventory)

    @property
    def in_use(self) -> DevicesInUse:
        """The devices that containers have at the moment."""
        return self._in_use()

    @property
    def gpus(self) -> Mapping[str, ObservedGpu]:
        """The node's GPUs by UUID, advertised or not."""
        return self.state.gpus

    @property
    def driver(self) -> str:
        """The driver's version; empty if NVML has never answered."""
        return self.state.driver or ""

    @property
    def resources(self) -> Set[str]:
        """The resources by which kubelet hands out GPUs and MIG devices."""
        native = {kind.resource for kind in (*self.native, *self.mig.value)}
        return {kind.resource for kind in self.tickets} | native

    @property
    def partitionable(self) -> Set[str] | None:
        """The GPUs that grants may partition; None while that is not known."""
        return self.state.partitionable

    def memory_bytes(self, gpu: str) -> int:
        """The memory of a GPU; 0 where it is not known."""
        observed = self.state.gpus.get(gpu)
        return (observed.facts.memory_mib or 0) * MIB if observed else 0

    def daemon(self, gpu: str) -> MpsDaemon | None:
        """The MPS daemon of a GPU."""
        return self.state.daemons.get(gpu)
