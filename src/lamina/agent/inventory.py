"""What the node publishes: the GPUs that NVML knows, as the configuration lets them be shared."""

from collections.abc import Iterable

from lamina.agent.health import GpuState
from lamina.dialects.config import NodeSettings
from lamina.model.gpus import Gpu, Inventory


def inventory(node: str, driver: str, states: Iterable[GpuState], settings: NodeSettings) -> Inventory:
    """The node's Inventory: filtered GPUs and those without known memory are left out, sick ones say why."""
    offered = []
    for facts, reason in states:
        memory = settings.memory_mib(facts.memory_mib)
        if memory is None or not settings.offers(facts.uuid, facts.index, mig_enabled=facts.mig_enabled):
            continue
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
            )
        )
    return Inventory(node=node, driver=driver, gpus=tuple(offered))


def nothing(node: str, driver: str) -> Inventory:
    """What a node publishes whose labels do not select it."""
    return Inventory(node=node, driver=driver)
