"""What metrics are computed from: GPUs, MIG devices, containers and grants at one moment, as plain data.

Memory is in bytes unless a name says otherwise, compute in percent of one GPU's time.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from lamina.core.gpu_facts import GpuReading
from lamina.core.gpus import Gpu
from lamina.core.grants import Share
from lamina.core.ledger import Taken
from lamina.core.mps import MpsDaemon

Enforcer = Literal["facade", "driver", "whole", "mig", "mps", "none"]
"""What limits the memory: Lamina's facade, the driver in addition to it, MIG, MPS, or nothing, because the GPU is the
container's own (whole) or is shared by time alone (none)."""


class MigSample(Struct, frozen=True, kw_only=True):
    """One MIG device of a GPU. `reading` is empty where it does not answer."""

    node: str
    gpu: str
    index: int
    uuid: str
    profile: str
    instance_id: int
    start: int
    size: str
    """How many memory slices it takes; empty where the card is not known."""
    reason: str = ""
    """Why its GPU is not healthy; empty while it is."""
    reading: GpuReading = GpuReading()


class ShareSample(Struct, frozen=True, kw_only=True):
    """One container's part of one GPU.

    `gpu` is the UUID that the container sees, a MIG device's if it has one; `place` is its number in the container.
    `held` has the bytes by kind of allocation, and as `foreign` what no process of the container owns; it is empty
    where nothing is known. A container that has not started, or does nothing, holds 0. The time that a MIG device works
    is not measured, nor whose time it is where a GPU is shared by time alone.
    """

    node: str
    namespace: str
    pod: str
    container: str
    gpu: str
    place: int
    enforcer: Enforcer
    limit: int
    request: int | None = None
    """What is guaranteed to it, where that is less than its limit."""
    mig: MigSample | None = None
    cores_percent: int | None = 0
    held: Mapping[str, int] = {}
    """Empty where it is not known; the same holds for None in the fields that follow."""
    spilled: int | None = 0
    hosted: int | None = 0
    """The part of `spilled` that it has to keep on the host."""
    peak: int | None = 0
    """None where nothing records it: a whole GPU or MIG device, or one shared by time alone."""
    refusals: int | None = 0
    busy_s: float | None = 0.0
    busy_is_whole: bool = True
    """Whether `busy_s` is all of its GPU time. That of a container without a share of time is measured only while a
    neighbor needs it."""
    used_at: float | None = None
    """When it used the GPU last, in seconds of CLOCK_MONOTONIC, where its GPU time is not measured; 0 if it never did,
    None if that is not known."""
    waited_s: float | None = 0.0
    window_s: float = 0.0
    """For how long of each period of 20 ms it begins launches, where containers take turns; 0 if it always may."""
    launch_s: float | None = None
    """What one of its launches takes on the GPU, on average; None where none was measured."""
    busy_percent: float | None = 0.0
    """GPU time that it got over the last seconds; None where not all of it is measured."""
    pod_uid: str = ""
    init: bool = False
    """Whether it is an init container, which has ended before others of its pod begin."""

    @property
    def used(self) -> int | None:
        return sum(self.held.values()) if self.held else None

    @property
    def guaranteed(self) -> int:
        return self.limit if self.request is None else self.request

    @property
    def borrowed(self) -> int | None:
        """What it uses beyond what is guaranteed to it."""
        return max(0, self.used - self.guaranteed) if self.used is not None and self.guaranteed else None


class GpuSample(Struct, frozen=True, kw_only=True):
    """One GPU of a node. `reading` is empty where it does not answer."""

    node: str
    driver: str
    """The driver's version."""
    uuid: str
    index: int
    model: str
    memory_bytes: int
    reason: str = ""
    """Why it is not healthy; empty while it is."""
    xid: int = 0
    """The last error that the driver reported; 0 is none."""
    reading: GpuReading = GpuReading()
    mps: MpsDaemon | None = None
    """The daemon by which the GPU is shared, if it is."""
    shares: tuple[ShareSample, ...] = ()
    """The containers that have it."""


class GrantedGpu(NamedTuple):
    """One GPU of the cluster, and what is granted of it."""

    node: str
    gpu: Gpu
    taken: Taken


class GrantedShare(NamedTuple):
    """One share of one container. `container` is its number among the containers of the pod that have shares."""

    namespace: str
    pod: str
    node: str
    container: int
    share: Share


class QuotaUsage(NamedTuple):
    """What is used of one limit of a ResourceQuota, in the unit of its resource. `hard` is the limit as written."""

    namespace: str
    resource: str
    hard: str
    limit: float
    used: int
