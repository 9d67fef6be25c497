"""What the node publishes: the GPUs that NVML knows, as the configuration lets them be shared."""

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from lamina.agent.health import GpuState
from lamina.agent.record import Instance
from lamina.dialects.config import NodeSettings
from lamina.model.gpus import Gpu, InstanceThere, Inventory, Mode
from lamina.model.mig_cards import mig_card
from lamina.ports.nvml import GpuFacts


class Divided(NamedTuple):
    """What is known of the node's MIG instances beside NVML's word: those that were `made` for grants, those that
    somebody has `used` without a grant, and in sentences what has to go and cannot."""

    made: Set[Instance] = frozenset()
    used: Set[Instance] = frozenset()
    left: tuple[str, ...] = ()


def inventory(
    node: str,
    driver: str,
    states: Iterable[GpuState],
    settings: NodeSettings,
    cordoned: Set[str] = frozenset(),
    governed: Set[str] = frozenset(),
    divided: Divided = Divided(),  # noqa: B008
) -> Inventory:
    """The node's Inventory: filtered GPUs and those without known memory are left out, sick ones say why.

    GPUs that are `governed` by the node's label are not for grants to cut, and are left out while they are cut.
    """
    shared = []
    for state in states:
        modes = modes_of(state.facts, settings.modes, governed)
        memory = _memory(state.facts, settings, modes)
        if memory is not None:
            shared.append((state, memory, modes))
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
                slots=settings.split_count,
                mig_capable=facts.mig_capable,
                numa=facts.numa,
                healthy=not reason,
                reason=reason,
                cordoned=facts.uuid in cordoned,
                links=tuple(facts.links.get(other.facts.uuid, 0) for other, *_ in shared) if facts.links else (),
                modes=modes,
                mig_card=card.model if card else "",
                mig_enabled=facts.mig_enabled,
                instances=_instances(facts, divided),
            )
        )
    return Inventory(node=node, driver=driver, gpus=tuple(offered))


def modes_of(facts: GpuFacts, allowed: Sequence[Mode], governed: Set[str]) -> tuple[Mode, ...]:
    """The modes that grants may put the GPU in, as `Gpu.modes` has them. What cannot be cut is in quota."""
    can_cut = facts.mig_capable and facts.uuid not in governed and mig_card(facts.pci_device) is not None
    modes = tuple(mode for mode in allowed if mode is not Mode.MIG or can_cut)
    return modes or tuple(Mode.QUOTA for _ in allowed)


def _instances(facts: GpuFacts, divided: Divided) -> tuple[InstanceThere, ...]:
    there = [Instance(gpu=facts.uuid, profile=each.profile, start=each.start) for each in facts.instances]
    return tuple(
        InstanceThere(profile=each.profile, start=each.start, made=each in divided.made, used=each in divided.used)
        for each in sorted(there)
    )


def _memory(facts: GpuFacts, settings: NodeSettings, modes: Sequence[Mode]) -> int | None:
    """MiB of a GPU that is to be shared, else None."""
    cut = facts.mig_enabled and Mode.MIG not in modes
    offered = settings.offers(facts.uuid, facts.index, mig_enabled=cut)
    return settings.memory_mib(facts.memory_mib) if offered else None


def nothing(node: str, driver: str) -> Inventory:
    """What a node publishes whose labels do not select it."""
    return Inventory(node=node, driver=driver)
