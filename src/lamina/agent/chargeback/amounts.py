"""What a pod has of one GPU at one moment, parts of a GPU that fit, and the sums of one account.

Each sum is of a part of a GPU multiplied by seconds, except memory, which is also in GiB by seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

import msgspec
from msgspec import Struct

from lamina.core.workloads import UNKNOWN, Workload


class AccountedGpu(Struct, frozen=True):
    """One GPU of the node. `memory_bytes` is 0 where the driver does not report it."""

    model: str
    memory_bytes: int


class UsageSample(Struct, frozen=True, kw_only=True):
    """What one pod has of one GPU, and what its containers do with it.

    `cores` are percent of the GPU's time; 0 for a pod that requests none. `used_bytes` is None where use is not known.
    `busy_s` are counters of GPU time by container; where they are None, `busy_percent` counts, if it is known. `marks`
    are numbers by container that grow when it uses the GPU, where its GPU time is not measured.
    """

    namespace: str
    pod_uid: str
    gpu: str
    memory_bytes: int
    cores: float = 0.0
    used_bytes: int | None = None
    busy_s: Mapping[str, float] | None = None
    busy_percent: float | None = None
    marks: Mapping[str, float] | None = None
    workload: Workload = UNKNOWN
    labels: Mapping[str, str] = {}
    """Values of the labels that have accounts, by label."""


def memory_parts(amounts: Sequence[int], gpu: AccountedGpu) -> list[float]:
    """The parts of a GPU's memory; all of it where its size is not known."""
    return fitting([amount / gpu.memory_bytes if gpu.memory_bytes else 1.0 for amount in amounts])


def fitting(parts: Sequence[float]) -> list[float]:
    """Parts of one GPU, each from 0 to 1; those that exceed it together shrink in proportion.

    Some of them are read from files that tenants write.
    """
    bounded = [min(max(part, 0.0), 1.0) for part in parts]
    together = sum(bounded)
    return [part / together for part in bounded] if together > 1 else bounded


class Amounts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is observed is the part of what was requested whose use was known; without any, use is not known. What is
    used is always what is observed and what was borrowed, less what was lent."""

    memory_requested: float = 0.0
    memory_observed: float = 0.0
    memory_used: float = 0.0
    memory_borrowed: float = 0.0
    """Used beyond the request."""
    compute_requested: float = 0.0
    compute_observed: float = 0.0
    compute_used: float = 0.0
    compute_borrowed: float = 0.0
    """Used beyond the request."""
    compute_lent: float = 0.0
    """Requested, and left to others."""
    gib_requested: float = 0.0
    gib_used: float = 0.0
    gib_borrowed: float = 0.0

    def figure(self, of: str, name: str) -> float | None:
        """A figure of `memory`, `compute` or `gib`; None for one of a use that is not known."""
        if name not in ("requested", "observed") and not (
            self.compute_observed if of == "compute" else self.memory_observed
        ):
            return None
        value: float = getattr(self, f"{of}_{name}")
        return value

    def plus(self, other: "Amounts") -> "Amounts":
        return Amounts(**{name: getattr(self, name) + getattr(other, name) for name in FIGURES})


FIGURES = tuple(field.name for field in msgspec.structs.fields(Amounts))
NO_AMOUNTS = Amounts()


def total(amounts: Iterable[Amounts]) -> Amounts:
    """All of them together."""
    return reduce(Amounts.plus, amounts, NO_AMOUNTS)
