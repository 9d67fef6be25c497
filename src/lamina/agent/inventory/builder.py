"""The node's Inventory: the GPUs that NVML lists, as the configuration lets them be shared."""

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import Instance
from lamina.configuration import NodeSettings
from lamina.core.gpus import ExistingMigInstance, Gpu, Inventory, Mode
from lamina.core.mig_cards import mig_card
from lamina.ports.nvml import GpuFacts


class OnDemandInstances(NamedTuple):
    """What NVML does not know of MIG instances: which were `made` for grants, which are `used` without a grant, and
    sentences about those that cannot be removed (`left`)."""

    made: Set[Instance] = frozenset()
    used: Set[Instance] = frozenset()
    left: tuple[str, ...] = ()


def build_inventory(
    node: str,
    driver: str,
    gpus: Iterable[ObservedGpu],
    settings: NodeSettings,
    cordoned: Set[str] = frozenset(),
    labelled: Set[str] = frozenset(),
    on_demand: OnDemandInstances = OnDemandInstances(),  # noqa: B008
) -> Inventory:
    """Filtered GPUs and those of unknown memory are left out; unhealthy ones say why.

    Grants may not partition GPUs that are `labelled`, and these are left out while they are partitioned.
    """
    shared = []
    for gpu in gpus:
        modes = settings.grant_modes(can_partition=_can_partition(gpu.facts, labelled))
        memory = _memory(gpu.facts, settings, modes)
        if memory is not None:
            shared.append((gpu, memory, modes))
    offered = []
    for (facts, reason, _), memory, modes in shared:
        card = mig_card(facts.pci_device) if Mode.MIG in modes else None
        offered.append(
            Gpu(
                uuid=facts.uuid,
                index=facts.index,
                model=facts.name,
                memory_mib=memory,
                capacity_mib=settings.capacity_mib(memory),
                cores_capacity=settings.cores_capacity,
                slots=settings.slots,
                mig_capable=facts.mig_capable,
                numa=facts.numa,
                minor=None if facts.minor == facts.index else facts.minor,
                healthy=not reason,
                reason=reason,
                cordoned=facts.uuid in cordoned,
                links=tuple(facts.links.get(other.facts.uuid, 0) for other, *_ in shared) if facts.links else (),
                modes=modes,
                mig_card=card.model if card else "",
                mig_enabled=facts.mig_enabled,
                instances=_instances(facts, on_demand),
            )
        )
    return Inventory(node=node, driver=driver, gpus=tuple(offered))


def _can_partition(facts: GpuFacts, labelled: Set[str]) -> bool:
    return facts.mig_capable and facts.uuid not in labelled and mig_card(facts.pci_device) is not None


def _instances(facts: GpuFacts, on_demand: OnDemandInstances) -> tuple[ExistingMigInstance, ...]:
    there = [Instance(gpu=facts.uuid, profile=each.profile, start=each.start) for each in facts.instances]
    return tuple(
        ExistingMigInstance(
            profile=each.profile, start=each.start, made=each in on_demand.made, used=each in on_demand.used
        )
        for each in sorted(there)
    )


def _memory(facts: GpuFacts, settings: NodeSettings, modes: Sequence[Mode]) -> int | None:
    """MiB of a GPU that the node shares, otherwise None."""
    partitioned = facts.mig_enabled and Mode.MIG not in modes
    offered = settings.offers(facts.uuid, facts.index, mig_enabled=partitioned)
    return settings.memory_mib(facts.memory_mib) if offered else None


def empty_inventory(node: str, driver: str) -> Inventory:
    """The Inventory of a node whose labels do not select it."""
    return Inventory(node=node, driver=driver)
