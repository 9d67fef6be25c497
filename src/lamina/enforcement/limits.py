"""What a container may use, and the file that says so."""

import ctypes
import re
from pathlib import Path

from msgspec import Struct, structs

from lamina.core.grants import ComputePolicy
from lamina.enforcement import layout
from lamina.enforcement.container_files import read_file, reason
from lamina.errors import BadInput, Outside

_UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
LOWEST_PRIORITY = 0xFFFFFFFF


class DeviceLimit(Struct, frozen=True, kw_only=True):
    """One GPU of a container.

    `context_bytes` is what a context is known to cost on it, 0 if it was not measured. `physical_bytes` is the part of
    `memory_bytes` that may be memory which stays on the GPU; 0 stands for all of it. What exceeds it becomes managed
    memory, which the driver moves between GPU and host. `request_bytes` is what is guaranteed of `memory_bytes` where
    the rest is lent; 0 stands for all of it. `most_percent` bounds what is lent beyond `cores_percent`; 0 stands for
    the whole GPU.
    """

    uuid: str
    memory_bytes: int
    cores_percent: int = 0
    most_percent: int = 0
    compute_policy: ComputePolicy = ComputePolicy.NONE
    context_bytes: int = 0
    physical_bytes: int = 0
    request_bytes: int = 0

    @property
    def guaranteed(self) -> int:
        """Bytes that the container gets whatever others do."""
        return self.request_bytes or self.memory_bytes

    def resized(self, memory_bytes: int, cores_percent: int) -> "DeviceLimit":
        """The same with another guaranteed amount and share. A limit up to which memory is lent stays as it is."""
        most = max(self.memory_bytes, memory_bytes) if self.request_bytes else memory_bytes
        request = memory_bytes if self.request_bytes else 0
        return structs.replace(self, memory_bytes=most, request_bytes=request, cores_percent=cores_percent)


class Limits(Struct, frozen=True, kw_only=True):
    """All of a container's GPUs, in the order of their indices on the node."""

    devices: tuple[DeviceLimit, ...]
    priority: int = 1
    """0 is the highest."""
    log_level: int = 1
    """0 errors only, 1 and warnings, 3 and information, 4 everything."""


def check(limits: Limits) -> None:
    """Raises BadInput unless the limits can be held: no memory limit, or none at all, never means unlimited."""
    if not 1 <= len(limits.devices) <= layout.MAX_DEVICES:
        raise BadInput(f"limits must name 1 to {layout.MAX_DEVICES} GPUs, got {len(limits.devices)}")
    uuids = [device.uuid.lower() for device in limits.devices]
    for device in limits.devices:
        if not _UUID.fullmatch(device.uuid):
            raise BadInput(f"limits: {device.uuid!r} is not the UUID of a GPU or MIG device")
        if uuids.count(device.uuid.lower()) > 1:
            raise BadInput(f"limits name {device.uuid} twice")
        if not 0 < device.memory_bytes < 1 << 63:
            raise BadInput(f"limits: memory on {device.uuid} must be at least 1 byte, got {device.memory_bytes}")
        if not 0 <= device.context_bytes < 1 << 63:
            raise BadInput(f"limits: context_bytes of {device.uuid} must be at least 0, got {device.context_bytes}")
        if not 0 <= device.request_bytes <= device.memory_bytes:
            raise BadInput(
                f"limits: request_bytes of {device.uuid} must be 0 to {device.memory_bytes}, its memory, "
                f"got {device.request_bytes}"
            )
        if not 0 <= device.physical_bytes <= device.guaranteed:
            raise BadInput(
                f"limits: physical_bytes of {device.uuid} must be 0 to {device.guaranteed}, its memory, "
                f"got {device.physical_bytes}"
            )
        lowest = 0 if device.compute_policy is ComputePolicy.NONE else 1
        if not lowest <= device.cores_percent <= 100:
            raise BadInput(f"limits: cores of {device.uuid} must be {lowest} to 100, got {device.cores_percent}")
        if device.most_percent and not device.cores_percent <= device.most_percent <= 100:
            raise BadInput(
                f"limits: the most cores of {device.uuid} must be {device.cores_percent} to 100, "
                f"got {device.most_percent}"
            )
    if not 0 <= limits.priority <= LOWEST_PRIORITY or not 0 <= limits.log_level <= LOWEST_PRIORITY:
        raise BadInput("limits: priority and log level must not be negative")


def encode(limits: Limits) -> bytes:
    """The bytes of the limits file. Raises BadInput."""
    check(limits)
    record = layout.LimitsFile(
        magic=layout.LIMITS_MAGIC,
        version=layout.VERSION,
        size=ctypes.sizeof(layout.LimitsFile),
        device_count=len(limits.devices),
        log_level=limits.log_level,
        priority=limits.priority,
    )
    for slot, device in zip(record.devices, limits.devices, strict=False):
        slot.uuid = device.uuid.encode()
        slot.memory_bytes = device.memory_bytes
        slot.context_bytes = device.context_bytes
        slot.physical_bytes = device.physical_bytes or device.guaranteed
        slot.request_bytes = device.request_bytes
        slot.cores_percent = device.cores_percent
        slot.most_percent = device.most_percent
        slot.compute_policy = layout.COMPUTE_POLICIES.index(device.compute_policy.value)
    record.checksum = layout.checksum(bytes(record))
    return bytes(record)


def decode(data: bytes) -> Limits:
    """The limits in a file's bytes. Raises BadInput for a file that programs would refuse too."""
    if len(data) != ctypes.sizeof(layout.LimitsFile):
        raise BadInput(f"a limits file has {ctypes.sizeof(layout.LimitsFile)} bytes, this one {len(data)}")
    record = layout.LimitsFile.from_buffer_copy(data)
    if record.magic != layout.LIMITS_MAGIC or record.version != layout.VERSION:
        raise BadInput("the file is not a limits file of this version")
    if record.checksum != layout.checksum(data):
        raise BadInput("the limits file is damaged")
    limits = Limits(
        devices=tuple(_device(record.devices[i]) for i in range(min(record.device_count, layout.MAX_DEVICES))),
        priority=record.priority,
        log_level=record.log_level,
    )
    check(limits)
    return limits


def _device(record: layout.LimitRecord) -> DeviceLimit:
    if record.compute_policy >= len(layout.COMPUTE_POLICIES):
        raise BadInput(f"the limits file has the unknown compute policy {record.compute_policy}")
    return DeviceLimit(
        uuid=record.uuid.decode("ascii", "replace"),
        memory_bytes=record.memory_bytes,
        cores_percent=record.cores_percent,
        most_percent=record.most_percent,
        compute_policy=ComputePolicy(layout.COMPUTE_POLICIES[record.compute_policy]),
        context_bytes=record.context_bytes,
        physical_bytes=0
        if record.physical_bytes == (record.request_bytes or record.memory_bytes)
        else record.physical_bytes,
        request_bytes=record.request_bytes,
    )


def read_limits(path: Path) -> Limits:
    """The limits in a file. Raises Outside when it cannot be read, BadInput when it is not sound."""
    try:
        return decode(read_file(path, ctypes.sizeof(layout.LimitsFile) + 1))
    except OSError as error:
        raise Outside(f"cannot read {path}: {reason(error)}") from error
