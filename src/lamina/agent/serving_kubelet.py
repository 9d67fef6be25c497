"""The plugins of one node: one for each kind of tickets, and one for each resource that is given out without grants."""

from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from lamina.agent.cluster import Cluster
from lamina.agent.containers import write_limits
from lamina.agent.nvidia_source import Applied
from lamina.agent.offer import Offer
from lamina.agent.plain import PlainKind, plain_kinds
from lamina.agent.plain_devices import PlainDevices
from lamina.agent.plain_prepare import AsBefore, PlainPreparer
from lamina.agent.plan import Places
from lamina.agent.plugin import Nobody, Plugin, Prepares
from lamina.agent.prepare import Preparer
from lamina.agent.record import Record
from lamina.agent.registration import Registration
from lamina.agent.settings import AgentSettings
from lamina.agent.tickets import Kind, kinds
from lamina.dialects.config import Config
from lamina.model.gpus import Mode
from lamina.model.sharing import Strategy
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
    """What the plugins work with."""

    settings: AgentSettings
    config: Config
    applied: Applied
    offer: Offer
    record: Record
    pod_resources: PodResources
    cluster: Cluster
    places: Places
    files: Files
    clock: Clock

    def registrations(self) -> Iterator[Coroutine[Any, Any, None]]:
        """The loops that keep kubelet knowing of each plugin."""
        for kind in self.offer.tickets:
            plugin = Plugin(
                kind.resource,
                self.offer.tickets[kind],
                self.record,
                tickets=self._by_ticket(kind),
                plain=AsBefore(self.record, self.places, self.files),
            )
            yield self._registration(plugin, kind).keep()
        for plain in self.offer.devices:
            assert self.applied.config is not None
            offered = self.offer.devices[plain]
            plugin = Plugin(
                plain.resource,
                offered,
                self.record,
                tickets=self._tickets_of(plain.resource),
                plain=self._plain(plain),
                devices=PlainDevices(plain, self.applied.config, offered, lambda: self.offer.gpus),
            )
            yield self._registration(plugin, plain).keep()

    def _registration(self, plugin: Plugin, kind: Kind | PlainKind) -> Registration:
        folder = self.settings.kubelet_dir / PLUGIN_FOLDER
        return Registration(plugin, folder, kind, files=self.files, clock=self.clock)

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
            gpus=lambda: self.offer.gpus,
            places=self.places,
            files=self.files,
            write_limits=write_limits,
        )

    def _plain(self, kind: PlainKind) -> PlainPreparer:
        return PlainPreparer(
            node=self.settings.node,
            kind=kind,
            mode=offered_kinds(self.config, self.applied).mode,
            memory=self.config.nvidia.replica_memory == "equal",
            record=self.record,
            pod_resources=self.pod_resources,
            cluster=self.cluster,
            gpus=lambda: self.offer.gpus,
            places=self.places,
            files=self.files,
        )
