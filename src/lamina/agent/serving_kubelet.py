"""The plugins of one node: one for each kind of tickets, and one for each resource that is given out without grants.

Resources of MIG devices come to be when GPUs are cut. Their plugins stay, with no devices when these went.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from lamina.agent.as_before import AsBefore
from lamina.agent.cluster import Cluster
from lamina.agent.containers import write_limits
from lamina.agent.current import Current
from lamina.agent.marks.wanted import Seen
from lamina.agent.mig.offering import SINGLE
from lamina.agent.mig.on_demand import OnDemand
from lamina.agent.nvidia_source import Applied
from lamina.agent.offer import Offer
from lamina.agent.plain import PlainKind, kind_of, plain_kinds
from lamina.agent.plain_devices import PlainDevices
from lamina.agent.plain_prepare import Joins, PlainPreparer
from lamina.agent.plan import Places
from lamina.agent.plugin import Devices, Nobody, Plugin, Prepares
from lamina.agent.prepare import Preparer
from lamina.agent.record import Record
from lamina.agent.registration import Registration
from lamina.agent.release import Releaser
from lamina.agent.settings import AgentSettings
from lamina.agent.tickets import Kind, Ticket, kinds
from lamina.dialects.config import Config
from lamina.dialects.nvidia import NvidiaConfig
from lamina.model.gpus import Mode
from lamina.model.nodes import kept_out
from lamina.model.sharing import GPU, Strategy
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.kubelet.podresources import PodResources
from lamina.ports.kubelet.registration import PLUGIN_FOLDER

_MODES = {Strategy.NONE: Mode.WHOLE, Strategy.TIME_SLICING: Mode.TIMESLICE, Strategy.MPS: Mode.MPS}


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """What kubelet is offered. A resource that is plain has no tickets."""

    tickets: tuple[Kind, ...]
    plain: tuple[PlainKind, ...]
    mode: Mode


def offered_kinds(config: Config, applied: Applied) -> Kinds:
    plain = plain_kinds(applied.config)
    resources = {kind.resource for kind in plain}
    tickets = tuple(kind for kind in kinds(config) if kind.resource not in resources)
    strategy = next((kind.strategy for kind in plain), Strategy.NONE)
    return Kinds(tickets=tickets, plain=plain, mode=_MODES[strategy])


@dataclass(frozen=True, kw_only=True)
class Doors:
    """What the plugins, and those who clean up behind them, work with."""

    settings: AgentSettings
    config: Config
    applied: Applied
    offer: Offer
    record: Record
    pod_resources: PodResources
    cluster: Cluster
    places: Places
    on_demand: OnDemand
    files: Files
    clock: Clock
    joins: Joins
    seen: Current[Seen | None]

    def registrations(self) -> Iterator[Coroutine[Any, Any, None]]:
        """The loops that keep kubelet knowing of each plugin."""
        for kind, offered in self.offer.tickets.items():
            plain: Prepares = AsBefore(kind.resource, self.record, self.offer, self.places, self.files)
            devices: Devices | None = None
            if self.offer.mig_strategy == SINGLE and kind.resource == GPU:
                # All GPUs may be cut, and their parts are what the resource is then.
                whole = kind_of(GPU, self.applied.sharing)
                plain, devices = self._plain(whole), self._devices(whole, offered)
            plugin = Plugin(
                kind.resource, offered, self.record, tickets=self._by_ticket(kind), plain=plain, devices=devices
            )
            yield self._registration(plugin, kind).keep()
        for each, offered in self.offer.devices.items():
            yield self._serving(each, offered)
        yield self._serving_cut()

    async def _serving_cut(self) -> None:
        """Keep a plugin for each resource of MIG devices that comes to be, for ever."""
        known: dict[PlainKind, Current[tuple[Ticket, ...]]] = {}
        async with asyncio.TaskGroup() as group:
            version = -1
            while True:
                version, cut = await self.offer.cut.after(version)
                for kind, devices in cut.items():
                    if kind not in known:
                        known[kind] = Current(devices)
                        group.create_task(self._serving(kind, known[kind]))
                    known[kind].set(devices)

    async def _serving(self, kind: PlainKind, offered: Current[tuple[Ticket, ...]]) -> None:
        plugin = Plugin(
            kind.resource,
            offered,
            self.record,
            tickets=self._tickets_of(kind.resource),
            plain=self._plain(kind),
            devices=self._devices(kind, offered),
        )
        await self._registration(plugin, kind).keep()

    def _devices(self, kind: PlainKind, offered: Current[tuple[Ticket, ...]]) -> PlainDevices:
        return PlainDevices(kind, self._nvidia, offered, self.offer)

    @property
    def _nvidia(self) -> NvidiaConfig:
        return self.applied.config or NvidiaConfig()

    def releaser(self) -> Releaser:
        """Who takes away what was made for containers that have gone."""
        tickets, plain = kinds(self.config), self.offer.devices
        return Releaser(
            resources={*(kind.resource for kind in tickets), *(kind.resource for kind in plain)},
            record=self.record,
            pod_resources=self.pod_resources,
            cluster=self.cluster,
            places=self.places,
            files=self.files,
            clock=self.clock,
        )

    def _registration(self, plugin: Plugin, kind: Kind | PlainKind) -> Registration:
        folder = self.settings.kubelet_dir / PLUGIN_FOLDER
        return Registration(
            plugin, folder, kind, files=self.files, clock=self.clock, counted=lambda: self._counted(kind.resource)
        )

    def _counted(self, resource: str) -> int | None:
        """What the node says that kubelet counts; of a node that is somebody else's that is nothing to us."""
        seen = self.seen.value
        amount = seen.allocatable.get(resource, "") if seen and not kept_out(seen.labels) else ""
        return int(amount) if amount.isdecimal() else None

    def _tickets_of(self, resource: str) -> Prepares:
        """Who prepares containers that hold tickets of a resource that is plain by now."""
        kind = next((kind for kind in kinds(self.config) if kind.resource == resource), None)
        return Nobody(f"{resource} has no tickets on this node") if kind is None else self._by_ticket(kind)

    def _by_ticket(self, kind: Kind) -> Preparer:
        return Preparer(
            node=self.settings.node,
            kind=kind,
            record=self.record,
            pod_resources=self.pod_resources,
            cluster=self.cluster,
            gpus=lambda: self.offer.beside_mps,
            places=self.places,
            files=self.files,
            write_limits=write_limits,
            on_demand=self.on_demand,
            sweep=self.releaser().sweep,
        )

    def _plain(self, kind: PlainKind) -> PlainPreparer:
        return PlainPreparer(
            node=self.settings.node,
            kind=kind,
            mode=offered_kinds(self.config, self.applied).mode,
            memory=self.config.nvidia.replica_memory == "equal",
            config=self._nvidia,
            record=self.record,
            pod_resources=self.pod_resources,
            cluster=self.cluster,
            offer=self.offer,
            places=self.places,
            files=self.files,
            uncut=self.on_demand.uncut,
            joins=self.joins,
        )
