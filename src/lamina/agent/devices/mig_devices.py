"""MIG devices as kubelet and containers get them: units of the resources that the MIG strategy makes of them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from lamina.agent.devices.native_devices import Unit, native_kind
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.core.gpu_facts import GpuFacts
from lamina.core.gpus import MigDeviceCount
from lamina.core.mig_devices import NO_STRATEGY, NONE, SINGLE, MigDevice, profile_resource, single_strategy_problem
from lamina.core.sharing import GPU, ReplicaSharing


def units_by_resource(
    strategy: str, gpus: Mapping[str, ObservedGpu], devices: Sequence[MigDevice]
) -> Mapping[str, tuple[Unit, ...]]:
    """The devices by resource, before sharing renames it. `gpus` are those of the node, by UUID."""
    if strategy == SINGLE and single_strategy_problem([state.facts for state in gpus.values()], devices):
        return {}
    units: dict[str, list[Unit]] = {}
    for device in devices if strategy != NONE else ():
        resource = GPU if strategy == SINGLE else profile_resource(device.profile.name)
        healthy = device.gpu in gpus and gpus[device.gpu].healthy
        units.setdefault(resource, []).append(Unit(device.uuid, device.gpu, healthy))
    return {resource: tuple(listed) for resource, listed in units.items()}


def counts_by_profile(
    devices: Sequence[MigDevice], *, strategy: str, problem: str, sharing: ReplicaSharing, mps: bool
) -> tuple[MigDeviceCount, ...]:
    """How many devices of each profile there are, and by which resource they are offered, or why not.

    `problem` is why the strategy advertises nothing, `mps` whether the node shares its GPUs by MPS.
    """
    reason = ""
    if mps:
        reason = "the node shares its GPUs by MPS, which cannot share MIG devices"
    elif strategy == NONE:
        reason = NO_STRATEGY
    elif problem:
        reason = f"the MIG strategy is {strategy}, and {problem}"
    return tuple(
        MigDeviceCount(
            profile=profile,
            count=count,
            resource=""
            if reason
            else native_kind(GPU if strategy == SINGLE else profile_resource(profile), sharing).resource,
            reason=reason,
        )
        for profile, count in sorted(Counter(device.profile.name for device in devices).items())
    )


def as_observed_gpus(gpus: Mapping[str, ObservedGpu], devices: Sequence[MigDevice]) -> dict[str, ObservedGpu]:
    """The devices as if they were GPUs, by UUID: each has the index and health of its GPU."""
    return {
        each.uuid: ObservedGpu(
            GpuFacts(
                uuid=each.uuid,
                index=gpus[each.gpu].facts.index,
                name=f"{gpus[each.gpu].facts.name} MIG {each.profile.name}",
                memory_mib=each.profile.memory_mib,
            ),
            gpus[each.gpu].reason,
        )
        for each in devices
        if each.gpu in gpus
    }
