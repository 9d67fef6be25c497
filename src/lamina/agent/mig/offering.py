"""Which resources a node's MIG devices are, by NVIDIA's strategy.

mixed   each profile is a resource of its own, such as nvidia.com/mig-1g.5gb
single  they are nvidia.com/gpu, where all GPUs are cut and into one profile; nothing is, where only some are
none    they are offered to nobody
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamina.agent.health import GpuState
from lamina.agent.plain import Unit
from lamina.dialects.mig_parted import resource_part
from lamina.model.mig import MigProfile
from lamina.model.sharing import GPU
from lamina.ports.nvml import GpuFacts, MigInstance

PREFIX = "nvidia.com/mig-"
NONE, SINGLE, MIXED = "none", "single", "mixed"


class MigDevice(NamedTuple):
    """A whole instance that is there for whoever kubelet gives it to; `gpu` is the UUID of the GPU that it is of."""

    gpu: str
    instance: MigInstance
    profile: MigProfile

    @property
    def uuid(self) -> str:
        return self.instance.uuid


def resource(profile: str) -> str:
    """The name of a profile's resource: nvidia.com/mig-1g.5gb.me for 1g.5gb+me."""
    return PREFIX + resource_part(profile)


def problem(gpus: Sequence[GpuFacts], devices: Sequence[MigDevice]) -> str:
    """Why the strategy single offers nothing on a node with these GPUs, in NVIDIA's words; or nothing, also where no
    GPU is cut."""
    enabled = [each for each in gpus if each.mig_enabled]
    if not enabled:
        return ""
    if len(enabled) < len(gpus):
        return "all devices on the node must be configured with the same migEnabled value"
    cut = {each.gpu for each in devices}
    empty = next((each.index for each in enabled if each.uuid not in cut), None)
    if empty is not None:
        return f"device {empty} has no MIG devices configured"
    return "more than one MIG device type present on node" if len({each.profile.name for each in devices}) > 1 else ""


def units(strategy: str, gpus: Mapping[str, GpuState], devices: Sequence[MigDevice]) -> Mapping[str, tuple[Unit, ...]]:
    """The devices by resource, as named before any sharing. `gpus` are the node's, by UUID."""
    if strategy == SINGLE and problem([state.facts for state in gpus.values()], devices):
        return {}
    found: dict[str, list[Unit]] = {}
    for each in devices if strategy != NONE else ():
        name = GPU if strategy == SINGLE else resource(each.profile.name)
        healthy = each.gpu in gpus and gpus[each.gpu].healthy
        found.setdefault(name, []).append(Unit(each.uuid, each.gpu, healthy))
    return {name: tuple(each) for name, each in found.items()}


def as_states(gpus: Mapping[str, GpuState], devices: Sequence[MigDevice]) -> dict[str, GpuState]:
    """The devices as GPUs that containers may get, by their UUIDs: each has its GPU's index and health."""
    return {
        each.uuid: GpuState(
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
