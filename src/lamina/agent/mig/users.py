"""Who uses GPUs and MIG devices without a grant: pods with native devices, and processes of any origin."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from lamina.agent.context import NodeContext
from lamina.agent.devices.native_devices import unit_uuid
from lamina.ports.nvml import Nvml

Users = Mapping[str, Sequence[str]]
"""Descriptions of users such as `pod default/a`, by UUID of a GPU or MIG device. Unused ones have no entry."""


async def pods_using(node: NodeContext, resources: Collection[str]) -> dict[str, list[str]]:
    """The pods and ResourceClaims that hold devices of these resources, by UUID. Raises Outside."""
    users: dict[str, list[str]] = {}
    for allocation in node.record.allocations:
        bound = allocation.bound
        pod = str(bound or "a container that is starting")
        for unit in {unit_uuid(device) for device in allocation.tickets}:
            users.setdefault(unit, []).append(pod)
    for unit, claim in node.record.claimed.items():
        users.setdefault(unit, []).append(f"ResourceClaim {claim}")
    for holder in await node.pod_resources.holders(resources):
        for unit in {unit_uuid(device) for device in holder.devices}:
            users.setdefault(unit, []).append(f"pod {holder.namespace}/{holder.pod}")
    return {unit: list(dict.fromkeys(pods)) for unit, pods in users.items()}


async def processes_using(nvml: Nvml, uuids: Iterable[str]) -> dict[str, list[str]]:
    """The processes on GPUs and MIG devices, by UUID. Raises Outside."""
    running = {uuid: await nvml.processes(uuid) for uuid in uuids}
    return {uuid: [f"process {process.pid}" for process in found] for uuid, found in running.items() if found}
