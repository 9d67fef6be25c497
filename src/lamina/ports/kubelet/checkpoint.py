"""Kubelet's checkpoint of device allocations: to which container of which pod each device is assigned.

Kubelet writes it whole after each Allocate, before the pod's containers start, and reads it after a restart. Unlike
PodResources it has ordinary init containers, and names the pod by its UID. The file is kubelet's own, without a
version: what cannot be read is an error, and nothing is concluded from it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.kubelet.registration import PLUGIN_FOLDER

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
