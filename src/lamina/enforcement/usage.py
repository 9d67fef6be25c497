"""What a container's processes hold. The file is written by the tenant's own processes: believe nothing in it without
looking at it first, and never act upon it without asking the driver too."""

import ctypes
from pathlib import Path

from msgspec import Struct

from lamina.enforcement import layout
from lamina.enforcement.container_files import read_file, reason
from lamina.errors import BadInput, Outside


class DeviceUsage(Struct, frozen=True, kw_only=True):
    """One GPU of the container, all its processes together, in bytes; `refusals` counts requests over the limit.

    `spilled` is the part of `held` that became managed memory for lack of physical memory. `orphaned` is the part that
    no process holds as its own: allocations from others that it uses, whose owner is gone or outside of the container.
    """

    uuid: str
    held: int
    spilled: int
    orphaned: int
    peak: int
    refusals: int
    context_bytes: int
    """What a context was measured to cost, 0 if none was made yet."""
    busy_ns: int = 0
    """How long any of its processes had work on the GPU, ever; less what others got of it meanwhile."""
    hosted: int = 0
    """The part of `spilled` that is kept on the host, because others need the GPU's memory."""
    waited_ns: int = 0
    """How long its threads waited for their share of the GPU's time, ever, added up."""
    launch_ns: int = 0
    """What a launch takes on the GPU, on average, as far as it was measured lately; 0 if none was."""
    used_at_ns: int | None = None
    """Where its time is not measured: when it used the GPU last, give or take a minute, by CLOCK_MONOTONIC; 0 if no
    process has begun yet, None if that is not known."""


class ProcessUsage(Struct, frozen=True, kw_only=True):
    """One process, under the pid that it has in the container. `held` is keyed by UUID, then kind, in bytes."""

    pid: int
    name: str
    generation: int
    held: dict[str, dict[str, int]]
    spilled: dict[str, int]
    """Of what it holds, by UUID, what became managed memory for lack of physical memory."""
    hosted: dict[str, int] = {}
    """The part of that which is kept on the host, because others need the GPU's memory."""
    namespace: int = 0
    """The low bits of the inode of the PID namespace in which it has its PID."""

    def total(self, uuid: str) -> int:
        """Bytes that it holds on a GPU."""
        return sum(self.held.get(uuid, {}).values())


class Usage(Struct, frozen=True, kw_only=True):
    """A usage file at one moment."""

    generation: int
    devices: tuple[DeviceUsage, ...]
    processes: tuple[ProcessUsage, ...]

    def managed(self, uuid: str) -> int:
        """What is held of a GPU as managed memory, in bytes: requested as such, or instead of device memory."""
        return sum(each.held.get(uuid, {}).get("managed", 0) + each.spilled.get(uuid, 0) for each in self.processes)


def new_usage(uuids: tuple[str, ...], generation: int) -> bytes:
    """The head of a usage file without any allocation; the rest of the file is zeros."""
    record = layout.UsageFile(
        magic=layout.USAGE_MAGIC,
        version=layout.VERSION,
        device_count=len(uuids),
        size=layout.usage_bytes(len(uuids)),
        slot_count=layout.SLOTS,
        slot_stride=layout.slot_stride(len(uuids)),
        generation=generation,
    )
    for device, uuid in zip(record.devices, uuids, strict=False):
        device.uuid = uuid.encode()
    return bytes(record)


def uuids_of(head: bytes, size: int) -> tuple[str, ...]:
    """The devices that a usage file is about, from its first bytes and its size. Raises BadInput."""
    if len(head) < ctypes.sizeof(layout.UsageFile):
        raise BadInput("the usage file is truncated")
    record = layout.UsageFile.from_buffer_copy(head)
    if record.magic != layout.USAGE_MAGIC or record.version != layout.VERSION:
        raise BadInput("the file is not a usage file of this version")
    count = record.device_count
    if not 1 <= count <= layout.MAX_DEVICES or record.size != layout.usage_bytes(count) or size != record.size:
        raise BadInput("the usage file has a wrong size")
    return tuple(record.devices[i].uuid.decode("ascii", "replace") for i in range(count))


def decode(data: bytes) -> Usage:
    """What a usage file says. Raises BadInput."""
    uuids = uuids_of(data, len(data))
    record = layout.UsageFile.from_buffer_copy(data)
    processes = tuple(
        _process(data, ctypes.sizeof(layout.UsageFile) + i * layout.slot_stride(len(uuids)), uuids)
        for i in range(min(record.slots_used, layout.SLOTS))
    )
    living = tuple(process for process in processes if process is not None)
    orphaned = _orphaned(data, record)
    return Usage(
        generation=record.generation,
        devices=tuple(
            _device(record.devices[i], uuid, living, orphaned.get(i, 0), begun=record.slots_used > 0)
            for i, uuid in enumerate(uuids)
        ),
        processes=living,
    )


def _process(data: bytes, offset: int, uuids: tuple[str, ...]) -> ProcessUsage | None:
    slot = layout.Slot.from_buffer_copy(data, offset)
    if slot.owner == 0 or slot.owner & layout.CLEARING:
        return None
    held, spilled, hosted = {}, {}, {}
    for i, uuid in enumerate(uuids):
        place = offset + ctypes.sizeof(layout.Slot) + i * ctypes.sizeof(layout.SlotDevice)
        line = layout.SlotDevice.from_buffer_copy(data, place)
        held[uuid] = dict(zip(layout.KINDS, line.bytes, strict=True))
        spilled[uuid] = line.spilled
        hosted[uuid] = line.hosted
    return ProcessUsage(
        pid=slot.owner & ((1 << layout.PID_BITS) - 1),
        name=slot.name.decode("utf-8", "replace"),
        namespace=slot.owner >> (layout.PID_BITS + layout.START_BITS) & ((1 << layout.NS_BITS) - 1),
        generation=slot.generation,
        held=held,
        spilled=spilled,
        hosted=hosted,
    )


def _orphaned(data: bytes, record: layout.UsageFile) -> dict[int, int]:
    """Bytes that count by their uses, by device: shared allocations without a standing word of their owner."""
    owned: set[int] = set()
    used: dict[int, tuple[int, int]] = {}
    offset = layout.shares_offset(record.device_count)
    for i in range(min(record.shares_used, layout.SHARES)):
        share = layout.ShareRecord.from_buffer_copy(data, offset + i * ctypes.sizeof(layout.ShareRecord))
        role = share.holder >> 48
        if not _stands(data, share.holder, record.device_count):
            continue
        if role == layout.SHARE_OWN:
            owned.add(share.key)
        elif role == layout.SHARE_USE:
            used.setdefault(share.key, (share.device, share.bytes))
    sums: dict[int, int] = {}
    for key, (device, held) in used.items():
        if key not in owned:
            sums[device] = sums.get(device, 0) + held
    return sums


def _stands(data: bytes, holder: int, devices: int) -> bool:
    number = holder & 0xFFFF
    if number >= layout.SLOTS:
        return False
    slot = layout.Slot.from_buffer_copy(data, ctypes.sizeof(layout.UsageFile) + number * layout.slot_stride(devices))
    alive = slot.owner != 0 and not slot.owner & layout.CLEARING
    return alive and slot.generation == holder >> 16 & 0xFFFFFFFF


def _device(
    record: layout.UsageDevice, uuid: str, processes: tuple[ProcessUsage, ...], orphaned: int, *, begun: bool
) -> DeviceUsage:
    # Where its time is measured, its processes do not say that they use it.
    used_at = int(record.compute.used_at) or (None if begun else 0)
    return DeviceUsage(
        uuid=uuid,
        held=sum(process.total(uuid) for process in processes) + orphaned,
        spilled=sum(process.spilled[uuid] for process in processes),
        hosted=sum(process.hosted[uuid] for process in processes),
        orphaned=orphaned,
        peak=record.peak,
        refusals=record.refusals,
        context_bytes=record.context_bytes,
        busy_ns=max(0, record.compute.busy_ns - record.compute.refund_ns),
        waited_ns=record.compute.waited_ns,
        launch_ns=record.compute.launch_ns,
        used_at_ns=used_at,
    )


def read_usage(path: Path) -> Usage:
    """The usage file at this moment. Raises Outside when it cannot be read, BadInput when it is not sound.

    It is read, not mapped: its tenants may truncate it at any time, and touching a page that is gone kills the reader.
    """
    try:
        return decode(read_file(path, layout.usage_bytes(layout.MAX_DEVICES) + 1))
    except OSError as error:
        raise Outside(f"cannot read {path}: {reason(error)}") from error
