"""A node as placement sees it: its GPUs with what is free of each, worked out once and read many times."""

from collections.abc import Iterable, Mapping, Set

from msgspec import Struct

from lamina.core.gpus import Gpu, Inventory, Mode
from lamina.core.ledger import NOTHING, Taken, taken_by_claims
from lamina.core.mig_rules import MigRule
from lamina.placement.mig.partitions import Partitions, partitions_of, scheme_of
from lamina.placement.state.modes import allowed, kept


class GpuState(Struct, frozen=True):
    """One GPU and what other pods hold of it. Free amounts are never below 0, even where a node shrank."""

    gpu: Gpu
    taken: Taken
    free_slots: int
    free_memory: int
    free_cores: int
    busy: bool
    usage: float
    """Shares of slots, memory and cores that are taken, summed: 0 to 3."""
    modes: tuple[Mode, ...] = (Mode.QUOTA,)
    """The modes that the node allows, see `modes`."""
    kept: Mode | None = None
    """The mode that who is on the GPU keeps it in."""
    partitions: Partitions | None = None
    """Where it can be partitioned."""
    claimed: bool = False
    """Whether ResourceClaims hold part of it, so that it takes no shares."""

    @property
    def shareable_memory(self) -> int:
        """MiB that new shares may have: none while a pod has the whole GPU."""
        return 0 if self.taken.whole else self.free_memory

    @property
    def shareable_cores(self) -> int:
        """The same in percent of the GPU's time."""
        return 0 if self.taken.whole else self.free_cores

    @classmethod
    def of(cls, gpu: Gpu, taken: Taken, rules: tuple[MigRule, ...] = (), *, claimed: bool = False) -> "GpuState":
        scheme = scheme_of(gpu.mig_card, gpu.model, rules) if Mode.MIG in gpu.modes else None
        return cls(
            gpu=gpu,
            taken=taken,
            free_slots=0 if taken.whole else max(0, gpu.slots - taken.slots),
            free_memory=max(0, gpu.capacity_mib - taken.memory_mib),
            free_cores=max(0, gpu.cores_capacity - taken.cores),
            busy=taken.slots > 0 or taken.whole,
            usage=share(gpu, taken.slots, taken.memory_mib, taken.cores),
            modes=allowed(gpu, partitionable=scheme is not None),
            kept=kept(gpu, taken),
            partitions=partitions_of(scheme, taken.instances, gpu.instances) if scheme is not None else None,
            claimed=claimed,
        )


class NodeState(Struct, frozen=True):
    """One node's GPUs. Make a new one when its inventory or its ledger changes; nothing here is updated in place."""

    name: str
    gpus: tuple[GpuState, ...]
    usage: float
    """How full the node is, from 0 to 1: the mean over slots, memory and cores of all its GPUs."""
    log_level: int = 1

    @classmethod
    def of(
        cls,
        name: str,
        gpus: Inventory | Iterable[Gpu],
        taken: Mapping[str, Taken] | None = None,
        *,
        log_level: int = 1,
        rules: tuple[MigRule, ...] = (),
        allocated: Set[str] = frozenset(),
    ) -> "NodeState":
        """The node `name` with these GPUs, of which `taken` (by UUID) is granted to pods. `rules` say how GPUs may be
        partitioned, and `allocated` which GPUs kube-scheduler has given to claims."""
        listed = gpus.gpus if isinstance(gpus, Inventory) else tuple(gpus)
        held = taken or {}
        claimed = {*taken_by_claims(gpus.claims), *allocated} if isinstance(gpus, Inventory) else set()
        states = tuple(
            GpuState.of(gpu, held.get(gpu.uuid, NOTHING), rules, claimed=gpu.uuid in claimed) for gpu in listed
        )
        return cls(name=name, gpus=states, usage=_usage(states), log_level=log_level)


def share(gpu: Gpu, slots: int, memory_mib: int, cores: int) -> float:
    """What these amounts are of a GPU: their parts of its slots, memory and cores, summed."""
    return slots / max(1, gpu.slots) + memory_mib / max(1, gpu.capacity_mib) + cores / max(1, gpu.cores_capacity)


def _usage(states: tuple[GpuState, ...]) -> float:
    """HAMi's measure of a node: sums over its GPUs, so that a large GPU weighs more than a small one."""
    slots = sum(state.taken.slots for state in states) / max(1, sum(state.gpu.slots for state in states))
    memory = sum(state.taken.memory_mib for state in states) / max(1, sum(state.gpu.capacity_mib for state in states))
    cores = sum(state.taken.cores for state in states) / max(1, sum(state.gpu.cores_capacity for state in states))
    return min(1.0, (slots + memory + cores) / 3)
