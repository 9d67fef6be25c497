"""What the node offers at the moment: its inventory for the cluster, its tickets for kubelet.

Both follow from the same four things: what NVML knows, the configuration, whether the node's labels select it, and
what is in containers' hands. Until all are known the node offers nothing.

A node that has a configuration of NVIDIA's gives its GPUs out as plain devices and places no shares on them. A GPU that
is in use stays in its mode: it is offered in the other way when its containers have ended.

MIG devices are plain devices too, by the strategy: of resources that come to be with their profiles, or of
nvidia.com/gpu, whatever else that is on the node. Those of GPUs that grants may cut are given out by grants alone.
"""

from collections.abc import Callable, Iterable, Mapping, Set

from msgspec import structs

from lamina.agent.current import Current
from lamina.agent.health import GpuState
from lamina.agent.inventory import Divided, inventory, nothing
from lamina.agent.mig import offering
from lamina.agent.mig.offering import MigDevice
from lamina.agent.plain import PlainKind, Unit, devices, kind_of
from lamina.agent.tickets import Kind, Ticket, tickets
from lamina.agent.uses import Use, Uses, free_for, marked, takes_tickets
from lamina.dialects.config import NodeSettings
from lamina.model.gpus import Gpu, Inventory, Mode
from lamina.model.mps import MpsDaemon
from lamina.model.sharing import GPU, Sharing, TimeSlice


class Offer:
    """`inventory` is None until it is known; each change of it or of `tickets` wakes who waits for it."""

    def __init__(
        self,
        node: str,
        settings: NodeSettings,
        kinds: Iterable[Kind],
        plain: Iterable[PlainKind] = (),
        *,
        mode: Mode = Mode.WHOLE,
        sharing: Sharing = Sharing(),  # noqa: B008
        mig_strategy: str = offering.NONE,
        selected: bool,
        used: Callable[[], Uses] = Uses,
        cordoned: Set[str] | None = frozenset(),
        governed: Set[str] | None = frozenset(),
        made: Divided | None = Divided(),  # noqa: B008
    ) -> None:
        """`used` tells what is in containers' hands. Devices of the kinds `plain` are given out in `mode`, MIG devices
        by `sharing` and `mig_strategy`. While one of `cordoned`, `governed` and `made` is None, nobody knows yet which
        GPUs are cordoned, cut as the node's label says, or cut for grants, and nothing is published."""
        self._node = node
        self._settings = structs.replace(settings, modes=() if plain else settings.modes)
        self._selected = selected
        self._used = used
        self._mode = mode
        self.sharing = sharing
        self.mig_strategy = mig_strategy
        self._cordoned = cordoned
        self._governed = governed
        self._made = made
        self.cuttable: Set[str] | None = None if Mode.MIG in self._settings.modes else frozenset()
        """The GPUs that grants may cut by MIG; None while that is not known."""
        self._driver: str | None = None
        self._states: tuple[GpuState, ...] = ()
        self._enforced: tuple[str, ...] = ()
        self._slices: Mapping[str, tuple[TimeSlice, str]] = {}
        self.mig_devices: tuple[MigDevice, ...] = ()
        """Those that may be offered; what grants have made is not among them."""
        self._daemons: Mapping[str, MpsDaemon] = {}
        self.inventory: Current[Inventory | None] = Current(None)
        self.tickets: dict[Kind, Current[tuple[Ticket, ...]]] = {kind: Current(()) for kind in kinds}
        self.devices: dict[PlainKind, Current[tuple[Ticket, ...]]] = {kind: Current(()) for kind in plain}
        self.cut: Current[Mapping[PlainKind, tuple[Ticket, ...]]] = Current({})
        """MIG devices of the resources that there are beside `tickets` and `devices`. One that was there once stays."""

    @property
    def driver(self) -> str:
        """The driver's version; empty while NVML never answered."""
        return self._driver or ""

    @property
    def gpus(self) -> Mapping[str, GpuState]:
        """The node's GPUs by UUID, offered or not."""
        return {state.facts.uuid: state for state in self._states}

    @property
    def units(self) -> Mapping[str, GpuState]:
        """The GPUs and MIG devices that containers may have, by UUID."""
        gpus = self.gpus
        return {**gpus, **offering.as_states(gpus, self.mig_devices)}

    @property
    def resources(self) -> Set[str]:
        """Those by which kubelet gives out GPUs and MIG devices, by tickets or plainly."""
        plain = (*self.devices, *self.cut.value)
        return {kind.resource for kind in self.tickets} | {kind.resource for kind in plain}

    @property
    def beside_mps(self) -> Mapping[str, GpuState]:
        """The GPUs and MIG devices for containers that are no clients of MPS, whose daemon keeps all others off."""
        there = {gpu: daemon for gpu, daemon in self._daemons.items() if daemon.made}
        return {
            uuid: state._replace(reason=f"its daemon of MPS is {there[uuid].state.value}") if uuid in there else state
            for uuid, state in self.units.items()
        }

    @property
    def problem(self) -> str:
        """Why the strategy for MIG offers nothing, or nothing."""
        if self.mig_strategy != offering.SINGLE:
            return ""
        return offering.problem([state.facts for state in self._ours.values()], self.mig_devices)

    def observed(self, driver: str, states: tuple[GpuState, ...]) -> None:
        """NVML was asked."""
        self._driver, self._states = driver, states
        self._refresh()

    def divided(self, devices: tuple[MigDevice, ...]) -> None:
        """These MIG devices are there for whoever kubelet gives them to."""
        self.mig_devices = devices
        self._refresh()

    def govern(self, uuids: Set[str]) -> None:
        """The node's label says how these GPUs are cut, so that no grant may."""
        self._governed = frozenset(uuids)
        self._refresh()

    def made(self, made: Divided) -> None:
        """What is known of the MIG instances on GPUs that grants may cut."""
        self._made = made
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

    def sliced(self, slices: Mapping[str, tuple[TimeSlice, str]]) -> None:
        """Turns on these GPUs are to be so long, and why they are not, by UUID."""
        if slices != self._slices:
            self._slices = slices
            self._refresh()

    def by_mps(self, daemons: Mapping[str, MpsDaemon]) -> None:
        """These daemons of MPS are there or wanted, by GPU."""
        self._daemons = dict(daemons)
        self._refresh()

    def daemon(self, gpu: str) -> MpsDaemon | None:
        """The GPU's daemon of MPS."""
        return self._daemons.get(gpu)

    def undivided(self) -> tuple[str, ...]:
        """The UUIDs of the GPUs that are not cut by MIG, whose memory the driver may limit."""
        return tuple(state.facts.uuid for state in self._states if not state.facts.mig_enabled)

    def _refresh(self) -> None:
        if self._driver is None:
            return
        offered = nothing(self._node, self._driver)
        if self._selected:
            offered = inventory(
                self._node,
                self._driver,
                self._states,
                self._settings,
                self._cordoned or frozenset(),
                self._governed or frozenset(),
                self._made or Divided(),
            )
        if self._governed is not None:
            self.cuttable = frozenset(gpu.uuid for gpu in offered.gpus if Mode.MIG in gpu.modes)
        used, resource = self._in_use(), self._resource
        gpus = tuple(self._with_slice(marked(gpu, used, resource)) for gpu in offered.gpus)
        plain = self._offer_plain(gpus, used)
        if self._cordoned is not None and self._governed is not None and self._made is not None:
            listed = tuple(kind.offered(sum(each.healthy for each in ids)) for kind, ids in plain.items())
            now_offered = structs.replace(offered, gpus=gpus, plain=listed if self._selected else ())
            daemons = tuple(self._daemons[gpu] for gpu in sorted(self._daemons))
            self.inventory.set(
                structs.replace(now_offered, driver_held=self._enforced, mps=daemons, mig_left=self._made.left)
            )

    def _in_use(self) -> Uses:
        """What is in containers' hands; a GPU whose daemon of MPS is still there cannot be shared in another way."""
        used = self._used()
        if self._mode is Mode.MPS:
            return used
        return used._replace(gpus={**dict.fromkeys(self._daemons, Use(Mode.MPS, GPU)), **used.gpus})

    def _served(self, gpu: Gpu) -> bool:
        """Whether containers may begin on the GPU in the node's mode: by MPS while its daemon is ready."""
        daemon = self._daemons.get(gpu.uuid)
        return gpu.healthy and (self._mode is not Mode.MPS or (daemon is not None and daemon.ready))

    def _with_slice(self, gpu: Gpu) -> Gpu:
        length, failure = self._slices.get(gpu.uuid, (None, ""))
        return structs.replace(gpu, time_slice=length, time_slice_failure=failure)

    def _offer_plain(self, gpus: Iterable[Gpu], used: Uses) -> Mapping[PlainKind, tuple[Ticket, ...]]:
        """Tell kubelet of its devices and tickets; what it now gives out without grants."""
        resource, cut = self._resource, self._cut()
        whole = [
            Unit(gpu.uuid, gpu.uuid, self._served(gpu)) for gpu in gpus if free_for(gpu, used, resource, self._mode)
        ]
        told: dict[PlainKind, tuple[Ticket, ...]] = {}
        for kind, current in self.devices.items():
            told[kind] = _devices(kind, () if self.problem else (*whole, *cut.pop(kind, ())), used)
            current.set(told[kind])
        for tickets_of, current in self.tickets.items():
            kind = kind_of(tickets_of.resource, self.sharing)
            parts = cut.pop(kind, ())
            if parts:
                told[kind] = devices(kind, parts)
            held = used.plain(tickets_of.resource, {unit.id for unit in parts})
            shares = tickets(tickets_of, filter(takes_tickets, gpus), held=used.tickets, before=current.value)
            current.set((*shares, *devices(kind, parts, held)))
        self.cut.set({kind: _devices(kind, cut.get(kind, ()), used) for kind in {**self.cut.value, **cut}})
        return {**told, **self.cut.value}

    def _cut(self) -> dict[PlainKind, tuple[Unit, ...]]:
        """The MIG devices by what they are offered as. MPS does not share them."""
        if not self._selected or self._mode is Mode.MPS:
            return {}
        named = offering.units(self.mig_strategy, self._ours, self.mig_devices)
        return {kind_of(name, self.sharing): units for name, units in named.items()}

    @property
    def _ours(self) -> Mapping[str, GpuState]:
        """The GPUs that the configuration lets be offered, cut or not, but for those that grants may cut."""
        by_grant = self.cuttable or ()
        return {
            uuid: one
            for uuid, one in self.gpus.items()
            if uuid not in by_grant and self._settings.offers(uuid, one.facts.index)
        }

    @property
    def _resource(self) -> str:
        """The resource as which GPUs are given out without grants, empty where they are not."""
        return next((kind.resource for kind in self.devices), "")


def _devices(kind: PlainKind, units: Iterable[Unit], used: Uses) -> tuple[Ticket, ...]:
    """What kubelet is told of a kind, with what containers hold of its resource beside these units."""
    listed = tuple(units)
    return devices(kind, listed, used.beside(kind.resource, {unit.id for unit in listed}))
