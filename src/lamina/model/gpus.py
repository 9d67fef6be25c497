"""A GPU as its node publishes it, and the inventory that holds a node's GPUs.

An inventory is a cluster-scoped object `inventories.lamina.dev`, named like its node. The node's agent writes it,
and only when it changes; everybody else reads it.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, field

from lamina.model.mps import MpsDaemon
from lamina.model.sharing import Strategy, TimeSlice

GROUP = "lamina.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CORDON = "hami.io/device-cordon"
"""The annotation of a node that names the GPUs on which nothing new is placed: UUIDs, joined by commas."""


class Mode(StrEnum):
    """How one GPU is divided at a time. An idle GPU may change its mode, a busy one may not."""

    WHOLE = "whole"
    QUOTA = "quota"
    TIMESLICE = "timeslice"
    MPS = "mps"
    MIG = "mig"


BY_GRANT = frozenset({Mode.WHOLE, Mode.QUOTA, Mode.MIG})
"""Modes in which grants say who has which part; in the others kubelet's own choice of a device does."""


class MigInstance(Struct, frozen=True, kw_only=True):
    """A MIG instance of a GPU: its profile and the memory slice at which it begins."""

    profile: str
    start: int


class InstanceThere(MigInstance, frozen=True, kw_only=True, omit_defaults=True):
    """An instance that is on a GPU now. One that was `made` for a grant is taken away when no grant has it. Others
    stay, and may be granted as they are unless somebody without a grant has `used` them."""

    made: bool = False
    used: bool = False


class Gpu(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One physical GPU. Memory is in MiB, compute in percent of one GPU's time.

    `capacity_mib` and `cores_capacity` are what may be granted in sum: the physical amount times the node's scaling.
    `slots` is how many containers may share the GPU.
    """

    uuid: str
    index: int
    model: str
    memory_mib: int = field(name="memoryMiB")
    capacity_mib: int = field(name="capacityMiB")
    cores_capacity: int = 100
    slots: int = 10
    mig_capable: bool = False
    numa: int | None = None
    healthy: bool = True
    reason: str = ""
    """Why the GPU is not healthy; empty while it is."""
    cordoned: bool = False
    """Nothing new is placed on the GPU; who is on it stays."""
    links: tuple[int, ...] = ()
    """How well the GPU is connected to each GPU of its inventory, in that order, 0 to itself; empty where unknown."""
    mode: Mode | None = None
    """The mode that containers on the GPU have put it in; None while it is idle and may take any of its node's."""
    plain: str = ""
    """The resource by which kubelet gives the GPU out without a grant, such as nvidia.com/gpu; empty with grants."""
    modes: tuple[Mode, ...] = ()
    """The modes that grants may put the GPU in while it is idle, the preferred one first; empty stands for quota and
    whole. MIG is among them only where instances can be made for grants: `mig_card` is known then."""
    mig_card: str = ""
    """What the GPU can be cut into: a key of `mig_cards.MIG_CARDS`."""
    mig_enabled: bool = False
    """Whether MIG mode is on."""
    instances: tuple[InstanceThere, ...] = ()
    """What is there of instances, in use or not. Only on GPUs that grants may cut."""
    time_slice: TimeSlice | None = None
    """How long turns are at most, where the node's configuration says; None leaves that to the driver."""
    time_slice_failure: str = ""
    """Why turns do not have that length; empty when they have."""

    @property
    def by_grant(self) -> bool:
        """Whether new shares of the GPU may be granted: its node offers it so, and nobody is on it otherwise."""
        return not self.plain and (self.mode is None or self.mode in BY_GRANT)


def cordoned(annotations: Mapping[str, str] | None) -> frozenset[str]:
    """The UUIDs that a node's annotations cordon."""
    return frozenset(uuid for part in (annotations or {}).get(CORDON, "").split(",") if (uuid := part.strip()))


class Plain(Struct, frozen=True):
    """A resource that a node offers by itself: kubelet gives out its `count` devices, and no grant is needed.

    Each GPU, or part of one, is offered `replicas` times, by the strategy `sharing`, which is none for one time.
    """

    resource: str
    count: int
    replicas: int = 1
    sharing: Strategy = Strategy.NONE


class Inventory(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The spec of an `Inventory` object: what one node has."""

    node: str
    driver: str = ""
    gpus: tuple[Gpu, ...] = ()
    plain: tuple[Plain, ...] = ()
    """What the node offers without grants; pods that only count these are kube-scheduler's to place."""
    driver_held: tuple[str, ...] = ()
    """Containers whose memory the driver itself limits, beside the facade, as `<pod UID>/<container>`."""
    mps: tuple[MpsDaemon, ...] = ()
    """The daemons by which GPUs are shared, those that still stop included."""
    mig_left: tuple[str, ...] = ()
    """What Lamina made of MIG and has to take away, and why it is still there, in sentences."""

    def offers_plainly(self, resources: Iterable[str]) -> bool:
        """Whether the node offers all of these, and there are any."""
        wanted = set(resources)
        return bool(wanted) and wanted <= {each.resource for each in self.plain}
