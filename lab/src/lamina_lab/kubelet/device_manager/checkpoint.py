"""The device manager's state on disk, so that containers keep devices and CDI names over a restart of the kubelet.

The file has the form of a real kubelet's, except that nothing checks its sum: agents read there what init containers
hold. Source: pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go.
"""

import base64
from collections.abc import Iterable
from pathlib import Path

import msgspec
from google.protobuf.message import DecodeError

from lamina.ports.kubelet import deviceplugin_pb2 as pb
from lamina_lab.kubelet.device_manager.allocation import Answer, DeviceAllocation, DeviceLedger, natural

FILE = "kubelet_internal_checkpoint"
_NO_NODE = -1
"""Stands for the NUMA node of a device without one."""


class _Entry(msgspec.Struct, frozen=True):
    pod_uid: str = msgspec.field(name="PodUID")
    container: str = msgspec.field(name="ContainerName")
    resource: str = msgspec.field(name="ResourceName")
    ids_by_node: dict[int, list[str]] = msgspec.field(name="DeviceIDs")
    answer: str = msgspec.field(name="AllocResp")


class _Data(msgspec.Struct, frozen=True):
    entries: list[_Entry] | None = msgspec.field(name="PodDeviceEntries")
    resources: dict[str, list[str]] = msgspec.field(name="RegisteredDevices")


class _Contents(msgspec.Struct, frozen=True):
    data: _Data = msgspec.field(name="Data")
    checksum: int = msgspec.field(name="Checksum", default=0)


def save(folder: Path, ledger: DeviceLedger) -> None:
    """Write `ledger` to `folder` atomically."""
    entries = [_entry(allocation) for allocation in ledger.allocations()]
    registered = {name: resource.healthy() for name, resource in sorted(ledger.resources.items())}
    fresh = folder / f".{FILE}"
    fresh.write_bytes(msgspec.json.encode(_Contents(_Data(entries or None, registered))))
    fresh.replace(folder / FILE)


def load(folder: Path) -> DeviceLedger:
    """The saved ledger; an empty one if there is none or it cannot be read."""
    ledger = DeviceLedger()
    try:
        data = msgspec.json.decode((folder / FILE).read_bytes(), type=_Contents).data
        allocations = [_allocation(entry) for entry in data.entries or ()]
    except (OSError, msgspec.MsgspecError, ValueError, DecodeError):
        return ledger
    for resource in data.resources:
        ledger.expect(resource)
    for allocation in allocations:
        ledger.hold(allocation)
    return ledger


def read_answer(response: pb.ContainerAllocateResponse) -> Answer:
    """A plugin's answer for one container."""
    return Answer(
        envs=dict(response.envs),
        annotations=dict(response.annotations),
        mounts={mount.container_path: mount.host_path for mount in response.mounts},
        cdi=tuple(device.name for device in response.cdi_devices),
    )


def _entry(allocation: DeviceAllocation) -> _Entry:
    ids_by_node: dict[int, list[str]] = {}
    for id in allocation.ids:
        for node in allocation.numa.get(id) or (_NO_NODE,):
            ids_by_node.setdefault(node, []).append(id)
    answer = base64.b64encode(_written(allocation.answer).SerializeToString()).decode()
    return _Entry(allocation.pod_uid, allocation.container, allocation.resource, ids_by_node, answer)


def _allocation(entry: _Entry) -> DeviceAllocation:
    numa = {id: _nodes_of(id, entry) for id in _ids(entry)}
    answer = read_answer(pb.ContainerAllocateResponse.FromString(base64.b64decode(entry.answer)))
    return DeviceAllocation(entry.pod_uid, entry.container, entry.resource, tuple(numa), numa, answer)


def _ids(entry: _Entry) -> Iterable[str]:
    return sorted({id for ids in entry.ids_by_node.values() for id in ids}, key=natural)


def _nodes_of(id: str, entry: _Entry) -> tuple[int, ...]:
    return tuple(node for node, ids in entry.ids_by_node.items() if node != _NO_NODE and id in ids)


def _written(answer: Answer) -> pb.ContainerAllocateResponse:
    return pb.ContainerAllocateResponse(
        envs=answer.envs,
        annotations=answer.annotations,
        mounts=[pb.Mount(container_path=inside, host_path=host) for inside, host in answer.mounts.items()],
        cdi_devices=[pb.CDIDevice(name=name) for name in answer.cdi],
    )
