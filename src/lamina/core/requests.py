"""What a pod requests of GPUs, in neutral terms: every dialect is parsed into these, and placement reads only them."""

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy
from lamina.core.quota_room import QuotaRoom

MAX_GPU_CONTAINERS = 32
"""The most of them that request GPUs: their shares are arranged together, on each node where the pod may go."""


class SharingRules(Struct, frozen=True, kw_only=True):
    """Which containers may share a GPU with a container, if its dialect has rules of its own."""

    most: int | None = None
    """The most containers on one GPU, this one included; None leaves it to the GPU's slots."""
    one_isolation: bool = False
    """Only with containers of the same kind: all with a share of compute, or all without."""
    alone_below_mib: int = 0
    """No other container on a GPU of which it leaves less than this. One that has a GPU to itself under this rule has
    all of its memory, whatever it requests."""


class ContainerRequest(Struct, frozen=True, kw_only=True):
    """What one container requests: `count` GPUs, and the same share of each of them.

    Exactly one of `memory_mib` and `memory_percent` is set. `cores` is 0 if the container takes whatever time is left;
    `most_cores` is how much it may use of what others leave, 0 for all of it. `most_memory_mib` is how much memory it
    may hold while the GPU has room, 0 for no more than it requests. An `exclusive` container has its GPUs to itself; if
    it also requests 100 % of the memory, it gets whole GPUs. `sidecar` is an init container that keeps running.
    """

    container: str
    count: int
    memory_mib: int | None = None
    memory_percent: int | None = None
    most_memory_mib: int = 0
    cores: int = 0
    most_cores: int = 0
    exclusive: bool = False
    priority: int | None = None
    init: bool = False
    sidecar: bool = False
    sharing: SharingRules = SharingRules()
    room: QuotaRoom | None = None
    """What quotas leave to all containers of the pod together; None where no quota can be exceeded."""

    def memory_on(self, capacity_mib: int) -> int:
        """MiB that the container takes of a GPU on which `capacity_mib` MiB may be granted in sum."""
        if self.memory_mib is not None:
            return self.memory_mib
        if self.memory_percent is None:
            raise ValueError(f"the request of {self.container} names neither memory nor a percentage")
        return max(1, capacity_mib * self.memory_percent // 100)

    def counted_on(self, gpu_mib: int, capacity_mib: int) -> int:
        """MiB that count as its share of a GPU with `gpu_mib` MiB: a whole GPU has no more than that."""
        memory = self.memory_on(capacity_mib)
        return min(memory, gpu_mib) if self.whole else memory

    def lends(self, policy: ComputePolicy) -> bool:
        """Whether it may use all time that others leave beyond its share of compute, if that is held in this way."""
        return policy is ComputePolicy.WEIGHT and self.cores > 0 and not self.most_cores and not self.exclusive

    @property
    def whole(self) -> bool:
        """Whether the container gets whole GPUs, without limits."""
        return self.exclusive and self.memory_percent == 100


class GpuSelector(Struct, frozen=True, kw_only=True):
    """Which GPUs a pod accepts. Types are case-insensitive parts of the model name; empty accepts all."""

    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    not_uuids: tuple[str, ...] = ()
    idle: bool = False
    """Only GPUs that no other pod is on; others may come later."""
    modes: tuple[Mode, ...] = ()
    """Only GPUs in one of these modes, of `quota`, which stands for whole GPUs too, and `mig`."""

    def accepts(self, model: str) -> bool:
        """Whether GPUs of this model are accepted, whatever else they are."""
        name = model.lower()
        wanted = not self.types or any(part.lower() in name for part in self.types)
        return wanted and not any(part.lower() in name for part in self.not_types)


class PodRequest(Struct, frozen=True, kw_only=True):
    """All that one pod requests of GPUs; containers that request nothing are left out.

    Containers stand in the order in which Kubernetes starts them, init containers first. Policies are names of
    `policies` or empty, `gpu_policy` a comma-separated list of them. With `numa_bind` all GPUs of a container belong to
    one NUMA node. `compute_policy` says how shares of compute are enforced.
    """

    dialect: str
    containers: tuple[ContainerRequest, ...]
    selector: GpuSelector = GpuSelector()
    node_policy: str = ""
    gpu_policy: str = ""
    numa_bind: bool = False
    compute_policy: ComputePolicy = ComputePolicy.WEIGHT
    native_devices: tuple[str, ...] = ()
    """The resources that the pod counts, if it requests nothing else of GPUs: a node that offers all of them as native
    devices will do as well."""
    only_native_reason: str = ""
    """Why only such a node will do, so that nothing can be granted; empty if both will."""
    warnings: tuple[str, ...] = ()
    """What the user should know about a request that is served otherwise than it is written."""

    @property
    def room(self) -> QuotaRoom | None:
        """What quotas leave to the pod."""
        return self.containers[0].room if self.containers else None

    def within(self, room: QuotaRoom | None) -> "PodRequest":
        """The request under what quotas leave."""
        if self.room == room:
            return self
        return replace(self, containers=tuple([replace(each, room=room) for each in self.containers]))
