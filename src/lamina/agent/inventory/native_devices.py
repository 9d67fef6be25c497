"""Native devices: GPUs, MIG devices, or replicas of either, that kubelet assigns itself. No grant is needed.

The ID of a device is the UUID, followed by `::n` if it is replicated, as NVIDIA's plugin writes it. Monitoring tools
that read kubelet's device list know this form, so they attribute usage to the right GPU. MIG devices are units of the
resources that the MIG strategy makes of them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lamina.agent.inventory.tickets import KubeletDevice
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.configuration.nvidia import NvidiaConfig
from lamina.core.gpu_facts import GpuFacts
from lamina.core.gpus import MigDeviceCount, NativeResource
from lamina.core.mig_devices import NO_STRATEGY, NONE, SINGLE, MigDevice, profile_resource, single_strategy_problem
from lamina.core.sharing import GPU, ReplicaSharing, Replicated, Strategy

_NATIVE = re.compile(r"(GPU|MIG)-[^:]+(::[0-9]+)?")


class Unit(NamedTuple):
    """What is advertised whole or in replicas: a GPU or a MIG device. `gpu` is the UUID of the GPU it belongs to."""

    id: str
    gpu: str
    healthy: bool


class NativeKind(NamedTuple):
    """The devices of one resource, shared by `strategy`."""

    offer: Replicated
    strategy: Strategy = Strategy.NONE

    @property
    def resource(self) -> str:
        return self.offer.offered

    @property
    def endpoint(self) -> str:
        """The name of the plugin's socket in kubelet's directory."""
        return f"lamina-nvidia-{self.resource.partition('/')[2]}.sock"

    @property
    def replicated(self) -> bool:
        return self.offer.replicas > 1

    def covers(self, devices: Iterable[str]) -> bool:
        """Whether all these IDs have the form in which this kind is advertised."""
        return all(device in self.ids(unit_uuid(device)) for device in devices)

    def offered(self, healthy: int) -> NativeResource:
        """The entry in the node's Inventory, with `healthy` devices."""
        return NativeResource(self.resource, healthy, self.offer.replicas, self.strategy)

    def ids(self, unit: str) -> list[str]:
        """The IDs of the devices of one unit."""
        if not self.replicated:
            return [unit]
        return [f"{unit}::{number}" for number in range(self.offer.replicas)]


def native_kind(resource: str, sharing: ReplicaSharing) -> NativeKind:
    """How the devices of a resource are advertised; `resource` is its name before sharing renames it."""
    offer = sharing.of(resource)
    return NativeKind(offer, sharing.strategy if offer.replicas > 1 else Strategy.NONE)


def native_kinds(config: NvidiaConfig | None) -> tuple[NativeKind, ...]:
    """The resources that a node with this configuration always advertises natively."""
    return () if config is None else (native_kind(GPU, config.sharing),)


def is_native(device: str) -> bool:
    """Whether an ID is of a native device and not a ticket."""
    return _NATIVE.fullmatch(device) is not None


def all_native(devices: Iterable[str]) -> bool:
    """Whether all IDs, of one request or allocation, are of native devices; kubelet never mixes them with tickets."""
    return all(map(is_native, devices))


def unit_uuid(device: str) -> str:
    """The UUID in the ID of a device."""
    return device.partition("::")[0]


def is_mig_device(unit: str) -> bool:
    """Whether a UUID is of a MIG device and not of a GPU."""
    return unit.startswith("MIG-")


def advertised_devices(
    kind: NativeKind, units: Iterable[Unit], others: Iterable[KubeletDevice] = ()
) -> tuple[KubeletDevice, ...]:
    """The devices that kubelet gets to see. All replicas of an unhealthy GPU are unhealthy.

    `others` are devices of the same resource that containers still hold although the node no longer advertises them.
    They stay in the list, so that kubelet keeps counting them as allocated.
    """
    return (*(KubeletDevice(id, unit.healthy) for unit in units for id in kind.ids(unit.id)), *others)


def invalid_request(kind: NativeKind, ids: Sequence[str], *, one_at_most: bool) -> str:
    """Why kubelet's request is invalid, in the words of NVIDIA's plugin; empty if it is valid."""
    if one_at_most and kind.replicated and len(ids) > 1:
        return (
            f'invalid allocation request for "{kind.resource}": invalid request: '
            f"maximum request size for shared resources is 1; found {len(ids)}"
        )
    return ""


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
