"""What the node publishes: the GPUs that NVML knows, as the configuration lets them be shared."""

from collections.abc import Iterable, Set

from lamina.agent.health import GpuState
from lamina.dialects.config import NodeSettings
from lamina.model.gpus import Gpu, Inventory
from lamina.ports.nvml import GpuFacts


def inventory(
    node: str, driver: str, states: Iterable[GpuState], settings: NodeSettings, cordoned: Set[str] = frozenset()
) -> Inventory:
    """The node's Inventory: filtered GPUs and those without known memory are left out, sick ones say why."""
    shared = [(state, memory) for state in states if (memory := _memory(state.facts, settings)) is not None]
    offered = []
    for (facts, reason, _), memory in shared:
        offered.append(
            Gpu(
                uuid=facts.uuid,
                index=facts.index,
                model=facts.name,
                memory_mib=memory,
                capacity_mib=settings.capacity_mib(memory),
                cores_capacity=settings.cores_capacity,
                slots=settings.split_count,
                mig_capable=facts.mig_capable,
                numa=facts.numa,
                healthy=not reason,
                reason=reason,
                cordoned=facts.uuid in cordoned,
                links=tuple(facts.links.get(other.facts.uuid, 0) for other, _ in shared) if facts.links else (),
            )
        )
    return Inventory(node=node, driver=driver, gpus=tuple(offered))


def _memory(facts: GpuFacts, settings: NodeSettings) -> int | None:
    """MiB of a GPU that is to be shared, else None."""
    offered = settings.offers(facts.uuid, facts.index, mig_enabled=facts.mig_enabled)
    return settings.memory_mib(facts.memory_mib) if offered else None


def nothing(node: str, driver: str) -> Inventory:
    """What a node publishes whose labels do not select it."""
    return Inventory(node=node, driver=driver)
