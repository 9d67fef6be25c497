"""Shares and grants: the record that a pod's containers hold parts of GPUs on a node.

The object that the controller writes for it is described in `lamina.api.v1alpha1.grant`; for everything after placement
it is the only authority.
"""

from enum import StrEnum

from msgspec import Struct

from lamina.model.gpu_modes import MigInstance as MigInstance
from lamina.model.gpu_modes import Mode


class ComputePolicy(StrEnum):
    """What a share of compute means: nothing held, never more than the share, at least the share under load, or a part
    of the GPU's processors, which MPS holds."""

    NONE = "none"
    CAP = "cap"
    WEIGHT = "weight"
    THREADS = "threads"

    @property
    def by_time(self) -> bool:
        """Whether the share is one of the GPU's time, which Lamina measures and holds."""
        return self in (ComputePolicy.CAP, ComputePolicy.WEIGHT)


class Share(Struct, frozen=True, kw_only=True):
    """Part of one GPU for one container. No other container may use the GPU of an `exclusive` share meanwhile."""

    gpu: str
    memory_mib: int
    physical_mib: int = 0
    """The part of it that is sure to have a place on the GPU; 0 stands for all."""
    most_memory_mib: int = 0
    """How much it may hold while the GPU has room, above `memory_mib`; 0 stands for no more than that."""
    cores: int = 0
    most_cores: int = 0
    """How much it may use of what others leave, under the policy `weight`; 0 stands for all."""
    mode: Mode = Mode.QUOTA
    exclusive: bool = False
    compute_policy: ComputePolicy = ComputePolicy.NONE
    most_sharers: int | None = None
    """So many containers on the GPU, this one included; None leaves it to the GPU's slots."""
    one_isolation: bool = False
    """The GPU serves only shares that do as this one: all with a share of time, or all without."""
    mig: MigInstance | None = None
    """Where the mode is `mig`: the instance that the share is, which the agent of the node creates and removes."""

    @property
    def limit_mib(self) -> int:
        """The most memory that it may hold."""
        return max(self.memory_mib, self.most_memory_mib)


class ContainerSize(Struct, frozen=True, kw_only=True):
    """What a container may use of each of its GPUs since it was resized. `generation` grows with each change."""

    generation: int
    memory_mib: int
    cores: int = 0


class ContainerGrant(Struct, frozen=True, kw_only=True):
    """The shares of one container, one for each GPU that it was given."""

    name: str
    shares: tuple[Share, ...]
    init: bool = False
    sidecar: bool = False
    priority: int | None = None
    oversubscribed: bool = False
    """True where the node grants more memory than its GPUs have."""
    log_level: int = 1
    because: str = ""
    """In which mode its GPUs are and why, for people; empty where their node has no policy for modes."""
    size: ContainerSize | None = None
    """What it may use if it was resized; `shares` is what counts as taken, at least that."""


class Grant(Struct, frozen=True, kw_only=True):
    """The shares of one pod on a node."""

    pod: str
    pod_uid: str
    node: str
    dialect: str
    containers: tuple[ContainerGrant, ...]
    revision: int = 0
    """Grows with each change, so that a late report of an earlier one is known."""


def grant_name(pod: str, pod_uid: str) -> str:
    """The name of a pod's grant. The UID's part keeps a pod apart from a later one of the same name."""
    return f"{pod[:240].rstrip('.-')}-{pod_uid[:8]}"
