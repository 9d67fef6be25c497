"""What is told of a node at one moment. Memory is in bytes, compute in percent of one GPU's time."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from lamina.agent.health import GpuState
from lamina.model.mps import MpsDaemon
from lamina.ports.nvml import GpuReading, MigInstance

Enforcer = Literal["facade", "driver", "whole", "mig"]
"""Who holds the memory: our facade, the driver beside it, nobody, since the GPU is the container's own, or MIG."""


class Part(NamedTuple):
    """A MIG device: an instance of the GPU with this UUID."""

    gpu: str
    instance: MigInstance


class GpuSample(Struct, frozen=True, kw_only=True):
    """One GPU. `reading` is empty where it does not answer."""

    state: GpuState
    reading: GpuReading = GpuReading()
    mps: MpsDaemon | None = None
    """The daemon by which the GPU is shared, where it is."""


class ShareSample(Struct, frozen=True, kw_only=True):
    """One container's part of one GPU. `gpu` is the UUID that it sees, a MIG device's where it has a `part`; `place` is
    that one's number in the container.

    `held` has the bytes by kind of allocation, beside `foreign`, memory from outside of the container's processes. A
    container that has not begun, or does nothing, holds 0. Nobody measures the time that a MIG device works.
    """

    namespace: str
    pod: str
    container: str
    gpu: str
    place: int
    enforcer: Enforcer
    limit: int
    part: Part | None = None
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
    def used(self) -> int:
        return sum(self.held.values())
