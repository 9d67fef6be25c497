"""MIG devices and the resources that NVIDIA's MIG strategies make of them.

mixed   each profile is a resource of its own, such as nvidia.com/mig-1g.5gb
single  all are nvidia.com/gpu, if all GPUs are partitioned into one profile; otherwise the node advertises none
none    the node advertises none
"""

from collections.abc import Sequence
from typing import NamedTuple

from lamina.core.gpu_facts import GpuFacts, MigInstanceFacts
from lamina.core.gpus import MigDeviceCount
from lamina.core.mig import MigProfile

PREFIX = "nvidia.com/mig-"
NONE, SINGLE, MIXED = "none", "single", "mixed"
NO_STRATEGY = f"the MIG strategy is {NONE}"
"""Why a node with that strategy offers no MIG devices."""


class MigDevice(NamedTuple):
    """A complete instance that kubelet may assign. `gpu` is the UUID of its GPU."""

    gpu: str
    instance: MigInstanceFacts
    profile: MigProfile

    @property
    def uuid(self) -> str:
        return self.instance.uuid


def resource_part(profile: str) -> str:
    """A profile's name as part of a resource name or label: 1g.5gb.me for 1g.5gb+me."""
    return profile.replace("+", ".")


def profile_resource(profile: str) -> str:
    """The resource of a profile: nvidia.com/mig-1g.5gb.me for 1g.5gb+me."""
    return PREFIX + resource_part(profile)


def strategy_hint(devices: MigDeviceCount) -> str:
    """What to set so that devices are offered that no strategy offers, or nothing where that is not the cause."""
    if devices.reason != NO_STRATEGY:
        return ""
    return "; set it to mixed (hami.migStrategy, or mig.strategy in Lamina's own form)"


def single_strategy_problem(gpus: Sequence[GpuFacts], devices: Sequence[MigDevice]) -> str:
    """Why the strategy single advertises nothing on a node with these GPUs, in the words of NVIDIA's plugin.

    Empty if it advertises devices or no GPU is partitioned.
    """
    enabled = [gpu for gpu in gpus if gpu.mig_enabled]
    if not enabled:
        return ""
    if len(enabled) < len(gpus):
        return "all devices on the node must be configured with the same migEnabled value"
    partitioned = {device.gpu for device in devices}
    empty_index = next((gpu.index for gpu in enabled if gpu.uuid not in partitioned), None)
    if empty_index is not None:
        return f"device {empty_index} has no MIG devices configured"
    return (
        "more than one MIG device type present on node" if len({device.profile.name for device in devices}) > 1 else ""
    )
