"""How a node shares its GPUs in NVIDIA's way: each device is offered several times, and kubelet gives the replicas out.

Names of resources are those before renaming, such as nvidia.com/gpu and nvidia.com/mig-1g.5gb.
"""

from enum import StrEnum

from msgspec import Struct

GPU = "nvidia.com/gpu"
"""The resource for whole GPUs."""
SHARED = ".shared"
"""What a renamed resource has behind its name."""

MPS_CLIENTS = 48
"""How many clients a GPU has at most by MPS, from Volta on."""
MPS_CLIENTS_BEFORE_VOLTA = 16


class Strategy(StrEnum):
    """NVIDIA's words, as its label `nvidia.com/gpu.sharing-strategy` has them."""

    NONE = "none"
    TIME_SLICING = "time-slicing"
    MPS = "mps"


class TimeSlice(StrEnum):
    """How long turns on a GPU are at most, in NVIDIA's words; how many milliseconds each is, NVIDIA does not tell."""

    DEFAULT = "default"
    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"

    @property
    def number(self) -> int:
        """What nvidia-smi takes for it."""
        return list(TimeSlice).index(self)


class Replicated(Struct, frozen=True, kw_only=True):
    """One resource of which each device is offered `replicas` times, under the name `offered`."""

    name: str
    offered: str
    replicas: int

    @property
    def renamed(self) -> bool:
        return self.offered != self.name


class ReplicaSharing(Struct, frozen=True, kw_only=True):
    """What a node's configuration says about sharing. A resource that is not listed is offered once per device."""

    strategy: Strategy = Strategy.NONE
    resources: tuple[Replicated, ...] = ()
    one_at_most: bool = False
    """A container may not ask more than one replica."""

    def of(self, name: str) -> Replicated:
        """How the devices of the resource `name` are offered."""
        unshared = Replicated(name=name, offered=name, replicas=1)
        return next((each for each in self.resources if each.name == name), unshared)
