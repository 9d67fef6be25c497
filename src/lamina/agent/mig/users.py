"""Who uses GPUs and MIG devices without a grant: pods by kubelet's choice, and processes, whoever started them."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from lamina.agent.plain import unit_of
from lamina.agent.record import Record
from lamina.ports.kubelet.podresources import PodResources
from lamina.ports.nvml import Nvml

Users = Mapping[str, Sequence[str]]
"""Who uses a GPU or a MIG device, by its UUID: words such as `pod default/a`. Who is not used is not there."""


async def holders(record: Record, pod_resources: PodResources, resources: Collection[str]) -> dict[str, list[str]]:
    """The pods that hold devices of these resources, by the device's UUID. Raises Outside."""
    found: dict[str, list[str]] = {}
    for each in record.allocations:
        pod = f"pod {each.bound.namespace}/{each.bound.pod}" if each.bound else "a container that is starting"
        for unit in {unit_of(device) for device in each.tickets}:
            found.setdefault(unit, []).append(pod)
    for holder in await pod_resources.holders(resources):
        for unit in {unit_of(device) for device in holder.devices}:
            found.setdefault(unit, []).append(f"pod {holder.namespace}/{holder.pod}")
    return {unit: list(dict.fromkeys(pods)) for unit, pods in found.items()}


async def processes(nvml: Nvml, uuids: Iterable[str]) -> dict[str, list[str]]:
    """The processes on GPUs and MIG devices. Raises Outside."""
    running = {uuid: await nvml.processes(uuid) for uuid in uuids}
    return {uuid: [f"process {each.pid}" for each in found] for uuid, found in running.items() if found}
