"""A GPU as its node publishes it, and the inventory of all GPUs of a node.

The object that a node's agent writes for it is described in `lamina.api.v1alpha1.inventory`.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from lamina.model.borrowers import DisplacedBorrower
from lamina.model.claims import HeldClaim
from lamina.model.gpu_modes import MigInstance as MigInstance
from lamina.model.gpu_modes import Mode as Mode
from lamina.model.idle import IdlePod
from lamina.model.mps import MpsDaemon
from lamina.model.sharing import Strategy, TimeSlice
from lamina.model.sizes import AppliedSize
from lamina.model.survivors import Survivor

CORDON = "hami.io/device-cordon"
"""The annotation of a node that names the GPUs on which nothing new is placed: UUIDs, joined by commas."""
BY_GRANT = frozenset({Mode.WHOLE, Mode.QUOTA, Mode.MPS, Mode.MIG})
"""Modes in which grants can say who has which part. In the others, kubelet's own choice of a device does."""
NATIVE_MODES: Mapping[Strategy, Mode] = MappingProxyType(
    {Strategy.NONE: Mode.WHOLE, Strategy.TIME_SLICING: Mode.TIMESLICE, Strategy.MPS: Mode.MPS}
)
"""The mode of a GPU that kubelet allocates, by how its node offers it."""


class ExistingMigInstance(MigInstance, frozen=True, kw_only=True):
    """An instance that exists on a GPU. One that was `made` for a grant is removed when no grant has it. Others
    stay, and may be granted unless a process without a grant has `used` them."""

    made: bool = False
    used: bool = False


class Gpu(Struct, frozen=True, kw_only=True):
    """One physical GPU. Memory is in MiB, compute in percent of one GPU's time.

    `capacity_mib` and `cores_capacity` are what may be granted in sum: the physical amount times the node's scaling.
    `slots` is how many containers may share the GPU.
    """

    uuid: str
    index: int
    model: str
    memory_mib: int
    capacity_mib: int
    cores_capacity: int = 100
    slots: int = 10
    mig_capable: bool = False
    numa: int | None = None
    minor: int | None = None
    """The number of its device file, by which claims name it; None where that is its index."""
    healthy: bool = True
    reason: str = ""
    """Why the GPU is not healthy; empty while it is."""
    cordoned: bool = False
    """Nothing new is placed on the GPU; who is on it stays."""
    links: tuple[int, ...] = ()
    """How well the GPU is connected to each GPU of its inventory, in that order, 0 to itself; empty where unknown."""
    mode: Mode | None = None
    """The mode that containers on the GPU have put it in; None while it is idle and may take any of its node's."""
    native_resource: str = ""
    """The resource by which kubelet allocates the GPU without a grant, such as nvidia.com/gpu; empty with grants."""
    modes: tuple[Mode, ...] = ()
    """The modes that grants may put the GPU in while it is idle, the preferred one first; empty stands for quota and
    whole. MIG is among them only where instances can be made for grants: `mig_card` is known then."""
    mig_card: str = ""
    """How the GPU may be partitioned: a key of `mig_cards.MIG_CARDS`."""
    mig_enabled: bool = False
    """Whether MIG mode is on."""
    instances: tuple[ExistingMigInstance, ...] = ()
    """Instances on the GPU, in use or not. Only on GPUs that grants may partition."""
    time_slice: TimeSlice | None = None
    """How long turns are at most, where the node's configuration says; None leaves that to the driver."""
    time_slice_failure: str = ""
    """Why turns do not have that length; empty when they have."""

    @property
    def number(self) -> int:
        """By which claims name the GPU."""
        return self.index if self.minor is None else self.minor

    @property
    def by_grant(self) -> bool:
        """Whether new shares of the GPU may be granted: its node offers it for shares, and nothing else uses it."""
        return not self.native_resource and (self.mode is None or self.mode in BY_GRANT)


def cordoned(annotations: Mapping[str, str] | None) -> frozenset[str]:
    """The UUIDs that a node's annotations cordon."""
    return frozenset(uuid for part in (annotations or {}).get(CORDON, "").split(",") if (uuid := part.strip()))


class NativeResource(Struct, frozen=True):
    """A resource that a node offers by itself: kubelet allocates its `count` devices, and no grant is needed.

    Each GPU, or part of one, is offered `replicas` times, by the strategy `sharing`, which is none for one time.
    """

    resource: str
    count: int
    replicas: int = 1
    sharing: Strategy = Strategy.NONE


class MigDeviceCount(Struct, frozen=True, kw_only=True):
    """The MIG devices of one profile on a node that kubelet may allocate."""

    profile: str
    count: int
    resource: str = ""
    """The resource by which the node offers them; empty if it does not."""
    reason: str = ""
    """Why it does not; empty if it does."""


class Inventory(Struct, frozen=True, kw_only=True):
    """What one node has."""

    node: str
    driver: str = ""
    gpus: tuple[Gpu, ...] = ()
    native_resources: tuple[NativeResource, ...] = ()
    """What the node offers without grants; pods that only count these are kube-scheduler's to place."""
    tickets: tuple[str, ...] = ()
    """The resources by which kubelet counts pods with grants: who has some of them without a grant takes them away."""
    driver_limited: tuple[str, ...] = ()
    """Containers whose memory the driver itself limits, in addition to the facade, as `<pod UID>/<container>`."""
    mps: tuple[MpsDaemon, ...] = ()
    """The daemons by which GPUs are shared, those that still stop included."""
    mig_leftovers: tuple[str, ...] = ()
    """What Lamina created by MIG and must remove, and why it still exists, in sentences."""
    survivors: tuple[Survivor, ...] = ()
    """Pods that are deleted and whose processes still run here."""
    confirmed_survivors: tuple[str, ...] = ()
    """Those of them that the controller knows to have had a grant here, as <namespace>/<UID>."""
    resized: tuple[AppliedSize, ...] = ()
    """Containers that were resized, with the size that they have."""
    idle: tuple[IdlePod, ...] = ()
    """Pods that have used no GPU for so long that the configuration lets their shares be reclaimed."""
    displaced: tuple[DisplacedBorrower, ...] = ()
    """Pods that have kept borrowed memory on the host for so long that the configuration lets them be evicted."""
    claims: tuple[HeldClaim, ...] = ()
    """ResourceClaims that are prepared here. A GPU that one has takes no grants."""
    allocated: tuple[str, ...] = ()
    """UUIDs of GPUs that kube-scheduler has allocated to claims. Agents do not publish them."""
    mig_devices: tuple[MigDeviceCount, ...] = ()
    """Those that exist, offered or not, except instances on GPUs that grants may partition."""

    def offers_native_devices(self, resources: Iterable[str]) -> bool:
        """Whether the node offers all of these, and there are any."""
        wanted = set(resources)
        return bool(wanted) and wanted <= {each.resource for each in self.native_resources}
