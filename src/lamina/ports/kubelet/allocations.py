"""Which container of which pod has which devices: kubelet's answer, and its checkpoint for what it does not answer.

Kubelet may list one resource of a container in several entries (one per NUMA node); they are united here, because a
holder is known by its whole set of devices or not at all. It writes the checkpoint whole after each Allocate, before
the pod's containers start, and reads it after a restart. Unlike PodResources it has ordinary init containers, and names
the pod by its UID. The file is kubelet's own, without a version: what cannot be read is an error, and nothing is
concluded from it.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import grpc
import msgspec

from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.kubelet import podresources_pb2 as messages
from lamina.ports.kubelet.podresources_pb2_grpc import PodResourcesListerStub
from lamina.ports.kubelet.servers import PLUGIN_FOLDER

_TIMEOUT_S = 10.0
_MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of an answer; a full node with many resources passes gRPC's 4 MiB."""


class Holder(NamedTuple):
    """A container and the devices of some resources that it holds. Ordinary init containers never appear."""

    namespace: str
    pod: str
    container: str
    devices: frozenset[str]


class PodResources(Protocol):
    """Kubelet's knowledge of who holds what."""

    async def holders(self, resources: Collection[str]) -> tuple[Holder, ...]:
        """Every container that holds devices of these resources. Raises Outside when kubelet does not answer."""
        ...


class KubeletPodResources:
    """The PodResources of a real kubelet. A connection is made for each question: kubelet's socket comes and goes."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def holders(self, resources: Collection[str]) -> tuple[Holder, ...]:
        try:
            async with grpc.aio.insecure_channel(
                f"unix:{self._socket}", options=[("grpc.max_receive_message_length", _MAX_ANSWER)]
            ) as channel:
                answer = await PodResourcesListerStub(channel).List(
                    messages.ListPodResourcesRequest(), timeout=_TIMEOUT_S
                )
        except grpc.RpcError as error:
            raise Outside(f"kubelet does not list its containers on {self._socket}: {error.details()}") from error
        return holders_in(answer, resources)


def holders_in(answer: messages.ListPodResourcesResponse, resources: Collection[str]) -> tuple[Holder, ...]:
    """The holders of these resources in an answer to List."""
    found = []
    for pod in answer.pod_resources:
        for container in pod.containers:
            devices = frozenset(
                device for entry in container.devices if entry.resource_name in resources for device in entry.device_ids
            )
            if devices:
                found.append(Holder(pod.namespace, pod.name, container.name, devices))
    return tuple(found)


CHECKPOINT = Path(PLUGIN_FOLDER) / "kubelet_internal_checkpoint"
"""Below kubelet's directory."""


class Assignment(NamedTuple):
    """The devices of one resource that kubelet has allocated to a container."""

    pod_uid: str
    container: str
    devices: frozenset[str]


class _Entry(msgspec.Struct):
    pod_uid: str = msgspec.field(name="PodUID")
    container_name: str = msgspec.field(name="ContainerName")
    resource_name: str = msgspec.field(name="ResourceName")
    device_ids: Mapping[str, tuple[str, ...]] = msgspec.field(name="DeviceIDs")
    """By NUMA node; a device of several nodes is in each of them."""


class _Data(msgspec.Struct):
    entries: tuple[_Entry, ...] | None = msgspec.field(name="PodDeviceEntries")
    """Go writes an empty list as null."""


class _Checkpoint(msgspec.Struct):
    data: _Data = msgspec.field(name="Data")


def read_assignments(files: Files, kubelet_dir: Path, resource: str) -> tuple[Assignment, ...]:
    """All assignments of devices of a resource. Raises Outside where kubelet's file is missing or of another form."""
    path = kubelet_dir / CHECKPOINT
    content = files.read(path)
    if content is None:
        raise Outside(f"kubelet has no file {path}")
    try:
        entries = msgspec.json.decode(content, type=_Checkpoint).data.entries or ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Outside(f"cannot read kubelet's file {path}: {error}") from error
    return tuple(
        Assignment(
            entry.pod_uid, entry.container_name, frozenset(id for ids in entry.device_ids.values() for id in ids)
        )
        for entry in entries
        if entry.resource_name == resource
    )
