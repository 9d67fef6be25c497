"""What is told of a node at one moment. Memory is in bytes, compute in percent of one GPU's time."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from lamina.agent.health import GpuState
from lamina.model.mig_cards import mig_card
from lamina.model.mps import MpsDaemon
from lamina.ports.nvml import GpuReading, MigInstance

Enforcer = Literal["facade", "driver", "whole", "mig", "none"]
"""Who holds the memory: our facade, the driver beside it, MIG, or nobody, since the GPU is the container's own (whole)
or is shared by time alone (none)."""


class GpuSample(Struct, frozen=True, kw_only=True):
    """One GPU. `reading` is empty where it does not answer."""

    state: GpuState
    reading: GpuReading = GpuReading()
    mps: MpsDaemon | None = None
    """The daemon by which the GPU is shared, where it is."""
    policy: int = 2
    """CCE's word for how containers share it: 0 by memory, 1 by memory and compute, 2 not at all."""


class PartSample(NamedTuple):
    """One MIG device of a GPU."""

    gpu: GpuState
    instance: MigInstance
    reading: GpuReading = GpuReading()

    @property
    def size(self) -> str:
        """How many memory slices it takes, as a text; empty where the card is not known."""
        card = mig_card(self.gpu.facts.pci_device)
        try:
            return "" if card is None else str(card.profile(self.instance.profile).size)
        except KeyError:
            return ""


class ShareSample(Struct, frozen=True, kw_only=True):
    """One container's part of one GPU. `gpu` is the UUID that it sees, a MIG device's where it has a `part`; `place` is
    that one's number in the container.

    `held` has the bytes by kind of allocation, beside `foreign`, memory from outside of the container's processes; it
    is empty where nobody knows. A container that has not begun, or does nothing, holds 0. Nobody measures the time that
    a MIG device works, nor whose it is where a GPU is shared by time alone.
    """

    namespace: str
    pod: str
    container: str
    gpu: str
    place: int
    enforcer: Enforcer
    limit: int
    part: PartSample | None = None
    cores_percent: int | None = 0
    held: Mapping[str, int] = {}
    spilled: int = 0
    peak: int = 0
    refusals: int = 0
    busy_s: float | None = 0.0
    waited_s: float | None = 0.0
    busy_percent: float | None = 0.0
    """GPU time got over the last seconds."""

    @property
    def used(self) -> int | None:
        return sum(self.held.values()) if self.held else None
