"""Which resources a node's MIG devices are, by NVIDIA's strategy: `mixed` names each profile, `none` offers nothing."""

from collections.abc import Mapping, Sequence

from lamina.dialects.mig_parted import resource_part
from lamina.ports.nvml import MigInstance

PREFIX = "nvidia.com/mig-"


def resource(profile: str) -> str:
    """The name of a profile's resource: nvidia.com/mig-1g.5gb.me for 1g.5gb+me."""
    return PREFIX + resource_part(profile)


def resources(strategy: str, instances: Sequence[MigInstance]) -> Mapping[str, tuple[str, ...]]:
    """UUIDs of the node's MIG devices by resource. What was left half made is no device."""
    found: dict[str, list[str]] = {}
    for instance in instances if strategy == "mixed" else ():
        if instance.uuid:
            found.setdefault(resource(instance.profile), []).append(instance.uuid)
    return {name: tuple(uuids) for name, uuids in found.items()}
