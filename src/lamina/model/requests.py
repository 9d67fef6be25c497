"""What a pod asks of GPUs, in neutral terms: every dialect is parsed into these, and placement reads nothing else."""

from msgspec import Struct

from lamina.model.gpus import Mode
from lamina.model.grants import ComputePolicy


class Sharing(Struct, frozen=True, kw_only=True):
    """Who may be on a GPU together with a container, where its vocabulary has rules of its own."""

    most: int | None = None
    """So many containers on one GPU, this one included; None leaves it to the GPU's slots."""
    one_isolation: bool = False
    """Only with containers that do as this one: all with a share of time, or all without."""
    alone_below_mib: int = 0
    """Nobody else on a GPU of which it leaves less than so many MiB."""


class ContainerRequest(Struct, frozen=True, kw_only=True):
    """What one container asks: `count` GPUs, and the same share of each of them.

    Exactly one of `memory_mib` and `memory_percent` is set. `cores` is 0 where the container takes whatever time
    is left. An `exclusive` container has its GPUs to itself; where it also asks 100 % of the memory, it gets whole
    GPUs. `sidecar` is an init container that keeps running.
    """

    container: str
    count: int
    memory_mib: int | None = None
    memory_percent: int | None = None
    cores: int = 0
    exclusive: bool = False
    priority: int | None = None
    init: bool = False
    sidecar: bool = False
    sharing: Sharing = Sharing()

    def memory_on(self, capacity_mib: int) -> int:
        """MiB that the container takes of a GPU on which `capacity_mib` MiB may be granted in sum."""
        if self.memory_mib is not None:
            return self.memory_mib
        if self.memory_percent is None:
            raise ValueError(f"the request of {self.container} names neither memory nor a percentage")
        return max(1, capacity_mib * self.memory_percent // 100)

    @property
    def whole(self) -> bool:
        """Whether the container gets GPUs as they are, with nothing to hold it to."""
        return self.exclusive and self.memory_percent == 100


class Wishes(Struct, frozen=True, kw_only=True):
    """Which GPUs a pod accepts. Types are case-insensitive parts of the model name; empty means no wish."""

    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    not_uuids: tuple[str, ...] = ()
    idle: bool = False
    """Only GPUs that no other pod is on; others may come later."""
    modes: tuple[Mode, ...] = ()
    """Only GPUs in one of these modes, of `quota`, which stands for whole GPUs too, and `mig`."""


class PodRequest(Struct, frozen=True, kw_only=True):
    """All that one pod asks of GPUs; containers that ask nothing are left out.

    Containers stand in the order in which Kubernetes starts them, init containers first. Policies are names of
    `policies` or empty, `gpu_policy` a comma list of them. With `numa_bind` all GPUs of a container are beside one NUMA
    node. `compute_policy` says how shares of compute are to be held where a container has one.
    """

    dialect: str
    containers: tuple[ContainerRequest, ...]
    wishes: Wishes = Wishes()
    node_policy: str = ""
    gpu_policy: str = ""
    numa_bind: bool = False
    compute_policy: ComputePolicy = ComputePolicy.WEIGHT
    plain: tuple[str, ...] = ()
    """The resources that the pod counts, where it asks nothing else of GPUs: a node that offers all of them without
    grants will do as well."""
    only_plain: str = ""
    """Why only such a node will do, so that nothing can be granted; empty where both will."""
