"""The device plugins of one node: one for each kind of tickets, and one for each resource of native devices.

Resources of MIG devices appear when GPUs are partitioned. Their plugins stay, without devices when these are gone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from lamina.agent.cleanup.release import Releaser
from lamina.agent.context import NodeContext
from lamina.agent.inventory.native_devices import NativeKind, native_kind, native_kinds
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.inventory.tickets import KubeletDevice, TicketKind, ticket_kinds
from lamina.agent.kubelet.plugin import AllocationPolicy, NativeAllocationPolicy, NoTickets, Preparer, ResourcePlugin
from lamina.agent.kubelet.registration import Registration
from lamina.agent.mps.clients import ClientEdits
from lamina.agent.mps.sharing import GrantClients
from lamina.agent.prepare.preparers import NativePreparer, NativeRules, StaleDevicePreparer, TicketPreparer
from lamina.agent.prepare.steps import PreparationSteps
from lamina.agent.state.observed import AppliedConfig, Observable, ObservedNode
from lamina.configuration import Config
from lamina.configuration.nvidia import NvidiaConfig
from lamina.core.gpus import NATIVE_MODES, Mode
from lamina.core.mig_devices import SINGLE
from lamina.core.nodes import kept_out
from lamina.core.sharing import GPU, Strategy
from lamina.ports.host import Host
from lamina.ports.kubelet.servers import PLUGIN_FOLDER
from lamina.ports.supervision import keep_running

Devices = tuple[KubeletDevice, ...]


@dataclass(frozen=True, kw_only=True)
class AdvertisedKinds:
    """What kubelet gets to see. A resource of native devices has no tickets."""

    tickets: tuple[TicketKind, ...]
    native: tuple[NativeKind, ...]
    mode: Mode
    """The mode of native devices."""


def advertised_kinds(config: Config, applied: AppliedConfig) -> AdvertisedKinds:
    native = native_kinds(applied.config)
    resources = {kind.resource for kind in native}
    tickets = tuple(kind for kind in ticket_kinds(config) if kind.resource not in resources)
    strategy = next((kind.strategy for kind in native), Strategy.NONE)
    return AdvertisedKinds(tickets=tickets, native=native, mode=NATIVE_MODES[strategy])


class Mechanisms(NamedTuple):
    """What prepares GPUs for containers. `mps_edits` returns what an MPS client needs, by resource and UUID; `clients`
    are those with grants. `require_unpartitioned` is as in NativeRules."""

    steps: PreparationSteps
    require_unpartitioned: Callable[[Iterable[str]], Awaitable[None]]
    mps_edits: Callable[[str, str], ClientEdits]
    clients: GrantClients
    host: Host


class Plugins:
    """Makes the device plugins of one node."""

    def __init__(
        self,
        node: NodeContext,
        offers: NodeOfferStore,
        mechanisms: Mechanisms,
        releaser: Releaser,
        observed: Observable[ObservedNode | None],
    ) -> None:
        self._node = node
        self._offers = offers
        self._mechanisms = mechanisms
        self._releaser = releaser
        self._observed = observed
        self._nvidia = node.nvidia.config or NvidiaConfig()
        self._steps = mechanisms.steps
        self._rules = NativeRules(
            mode=advertised_kinds(node.config, node.nvidia).mode,
            limit_memory=node.config.native_devices.replica_memory == "equal",
            config=self._nvidia,
            require_unpartitioned=mechanisms.require_unpartitioned,
            edits=mechanisms.mps_edits,
        )

    def registrations(self) -> dict[str, Registration]:
        """One for each resource that the node always has, by name of the part."""
        tickets = {
            part_name(kind): self._registration(self._ticket_plugin(kind, offered), kind)
            for kind, offered in self._offers.tickets.items()
        }
        native = {
            part_name(kind): self.native_registration(kind, offered) for kind, offered in self._offers.native.items()
        }
        return tickets | native

    def native_registration(self, kind: NativeKind, offered: Observable[Devices]) -> Registration:
        return self._registration(self._native_plugin(kind, offered), kind)

    def _ticket_plugin(self, kind: TicketKind, offered: Observable[Devices]) -> ResourcePlugin:
        node = self._node
        native: Preparer = StaleDevicePreparer(kind.resource, node, self._offers)
        policy: AllocationPolicy | None = None
        if self._offers.state.mig_strategy == SINGLE and kind.resource == GPU:
            # If all GPUs are partitioned, this resource has their MIG devices.
            whole = native_kind(GPU, node.nvidia.sharing)
            native, policy = self._native_preparer(whole), self._native_policy(whole, offered)
        tickets = self._ticket_preparer(kind)
        return ResourcePlugin(
            kind.resource, offered, node.record, tickets=tickets, native=native, aside=node.aside, policy=policy
        )

    def _native_plugin(self, kind: NativeKind, offered: Observable[Devices]) -> ResourcePlugin:
        return ResourcePlugin(
            kind.resource,
            offered,
            self._node.record,
            tickets=self._tickets_of(kind.resource),
            native=self._native_preparer(kind),
            aside=self._node.aside,
            policy=self._native_policy(kind, offered),
        )

    def _registration(self, plugin: ResourcePlugin, kind: TicketKind | NativeKind) -> Registration:
        folder = self._node.settings.kubelet_dir / PLUGIN_FOLDER
        return Registration(
            plugin,
            folder,
            kind,
            files=self._node.files,
            clock=self._node.clock,
            counted=lambda: self._counted(kind.resource),
        )

    def _counted(self, resource: str) -> int | None:
        """How many devices the node's status has. None for a node assigned to another system: its counts mean nothing
        here."""
        observed = self._observed.value
        amount = observed.allocatable.get(resource, "") if observed and not kept_out(observed.labels) else ""
        return int(amount) if amount.isdecimal() else None

    def _tickets_of(self, resource: str) -> Preparer:
        """Prepares containers with tickets of a resource that has become native."""
        kind = next((kind for kind in ticket_kinds(self._node.config) if kind.resource == resource), None)
        return NoTickets(f"{resource} has no tickets on this node") if kind is None else self._ticket_preparer(kind)

    def _ticket_preparer(self, kind: TicketKind) -> TicketPreparer:
        return TicketPreparer(
            self._node,
            kind,
            self._steps,
            self._mechanisms.clients,
            gpus=lambda: self._offers.state.units,
            release_gone=self._releaser.reconcile,
        )

    def _native_preparer(self, kind: NativeKind) -> NativePreparer:
        return NativePreparer(self._node, kind, self._rules, self._offers, self._steps)

    def _native_policy(self, kind: NativeKind, offered: Observable[Devices]) -> NativeAllocationPolicy:
        return NativeAllocationPolicy(kind, self._nvidia, offered, self._offers, self._mechanisms.host)


class MigPlugins:
    """Starts a plugin for each resource of MIG devices that appears."""

    def __init__(self, plugins: Plugins, offers: NodeOfferStore, node: NodeContext) -> None:
        self._plugins = plugins
        self._mig = offers.mig
        self._node = node

    async def run(self) -> None:
        known: dict[NativeKind, Observable[Devices]] = {}
        async with asyncio.TaskGroup() as group:
            version = -1
            while True:
                version, devices_by_kind = await self._mig.after(version)
                for kind, devices in devices_by_kind.items():
                    if kind not in known:
                        known[kind] = Observable(devices)
                        serve = partial(self._serve, kind, known[kind])
                        group.create_task(keep_running(part_name(kind), serve, self._node.clock, self._node.aside))
                    known[kind].set(devices)

    async def _serve(self, kind: NativeKind, offered: Observable[Devices]) -> None:
        await self._plugins.native_registration(kind, offered).run()


def part_name(kind: TicketKind | NativeKind) -> str:
    return f"plugin of {kind.resource}"
