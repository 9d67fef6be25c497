"""Devices that are GPUs, or replicas of GPUs, as NVIDIA's plugin names them: kubelet chooses, and no grant is needed.

A device's id is its UUID, with `::n` behind it where it is offered several times. Monitoring tools that read kubelet's
list know this form, so they attribute usage to the right GPU.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lamina.agent.tickets import Ticket
from lamina.dialects.nvidia import NvidiaConfig
from lamina.model.gpus import Plain
from lamina.model.sharing import GPU, Replicated, Sharing, Strategy

_PLAIN = re.compile(r"(GPU|MIG)-[^:]+(::[0-9]+)?")


class Unit(NamedTuple):
    """What is offered whole or in replicas: a GPU, or a part of one. `id` is its own UUID, `gpu` that of its GPU."""

    id: str
    gpu: str
    healthy: bool


class PlainKind(NamedTuple):
    """The devices of one resource, shared by `strategy`."""

    offer: Replicated
    strategy: Strategy = Strategy.NONE

    @property
    def resource(self) -> str:
        return self.offer.offered

    @property
    def endpoint(self) -> str:
        """The name of the plugin's socket in kubelet's folder."""
        return f"lamina-nvidia-{self.resource.partition('/')[2]}.sock"

    @property
    def replicated(self) -> bool:
        return self.offer.replicas > 1

    def covers(self, devices: Iterable[str]) -> bool:
        """Whether all these ids are of devices that are offered so."""
        return all(device in self.ids(unit_of(device)) for device in devices)

    def offered(self, healthy: int) -> Plain:
        """What the node says of it, while so many devices are healthy."""
        return Plain(self.resource, healthy, self.offer.replicas, self.strategy)

    def ids(self, unit: str) -> list[str]:
        """The ids of the devices of one unit."""
        if not self.replicated:
            return [unit]
        return [f"{unit}::{number}" for number in range(self.offer.replicas)]


def kind_of(resource: str, sharing: Sharing) -> PlainKind:
    """How the devices of a resource are offered, by its name before any sharing."""
    offer = sharing.of(resource)
    return PlainKind(offer, sharing.strategy if offer.replicas > 1 else Strategy.NONE)


def plain_kinds(config: NvidiaConfig | None) -> tuple[PlainKind, ...]:
    """The resources that a node always offers without grants by this configuration; none where it has none."""
    return () if config is None else (kind_of(GPU, config.sharing),)


def is_plain(device: str) -> bool:
    """Whether an id names a device, and is no ticket."""
    return _PLAIN.fullmatch(device) is not None


def unit_of(device: str) -> str:
    """The UUID in the id of a device."""
    return device.partition("::")[0]


def is_part(unit: str) -> bool:
    """Whether a UUID is a MIG device's, and not a GPU's."""
    return unit.startswith("MIG-")


def devices(kind: PlainKind, units: Iterable[Unit], others: Iterable[Ticket] = ()) -> tuple[Ticket, ...]:
    """What kubelet is told. A sick GPU takes all its replicas with it.

    `others` are of the same resource, and containers hold them from before, when the node handed out something else:
    they stay, so that kubelet counts them as there and as taken.
    """
    return (*(Ticket(id, unit.healthy) for unit in units for id in kind.ids(unit.id)), *others)


def refusal(kind: PlainKind, ids: Sequence[str], *, one_at_most: bool) -> str:
    """Why kubelet's request cannot be served, in NVIDIA's words, or nothing."""
    if one_at_most and kind.replicated and len(ids) > 1:
        return (
            f'invalid allocation request for "{kind.resource}": invalid request: '
            f"maximum request size for shared resources is 1; found {len(ids)}"
        )
    return ""
