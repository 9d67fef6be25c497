"""The state of a simulated machine, read from its file, and faults that can be injected."""

import mmap
import time
from pathlib import Path

from msgspec import Struct, structs

from lamina.errors import BadInput
from lamina_lab.simgpu import layout


class ProcessState(Struct, frozen=True, kw_only=True):
    """One process on one GPU. A killed process stays until NVML is queried or memory runs out."""

    pid: int
    name: str
    memory_mib: int
    spilled_mib: int
    contexts: int
    launches: int
    busy_ns: int
    """GPU time that it used since it took its slot."""
    queued_ns: int
    """GPU time that it requested and has not used yet."""
    mps_percent: int = 0
    """For an MPS client: its share of the GPU's processors."""


class SimulatedGpu(Struct, frozen=True, kw_only=True):
    """The current state of a GPU."""

    uuid: str
    memory_mib: int
    used_mib: int
    busy_ns: int
    """GPU time used by all processes since the machine was created."""
    turns: int
    contexts_made: int
    """By all processes since the machine was created."""
    lost: bool
    mig_enabled: bool
    processes: tuple[ProcessState, ...]


class InstanceState(SimulatedGpu, frozen=True, kw_only=True):
    """A MIG instance, which has everything that a GPU has; `uuid` is its device's."""

    parent: str
    """The UUID of its GPU."""
    profile: str
    start: int


class MachineState(Struct, frozen=True, kw_only=True):
    """The whole machine now. It is read while it runs, so sums may be slightly inconsistent."""

    now_ns: int
    gpus: tuple[SimulatedGpu, ...]
    instances: tuple[InstanceState, ...]


class _File:
    def __init__(self, path: Path) -> None:
        try:
            with path.open("r+b") as file:
                self.bytes = mmap.mmap(file.fileno(), 0)
        except (OSError, ValueError) as wrong:
            raise BadInput(f"{path} is not a machine file: {wrong}") from wrong
        start = self.bytes[: layout.HEADER_BYTES].ljust(layout.HEADER_BYTES, b"\0")
        self.header = layout.Header.from_buffer_copy(start)
        known = (self.header.magic, self.header.version) == (layout.MAGIC, layout.VERSION)
        if not known or self.header.size != len(self.bytes):
            raise BadInput(f"{path} is a machine file of another version; write it again")

    def gpu_number(self, uuid: str) -> int:
        for number in range(self.header.gpu_count):
            if self.gpu(number).uuid.decode() == uuid:
                return number
        raise BadInput(f"the machine has no GPU {uuid}")

    def gpu(self, number: int) -> layout.GpuRecord:
        return layout.GpuRecord.from_buffer_copy(self.bytes, layout.gpu_offset(number))

    def cell(self, number: int, slot: int) -> layout.Cell:
        return layout.Cell.from_buffer_copy(self.bytes, layout.cell_offset(number, slot))

    def process(self, slot: int) -> layout.ProcessRecord:
        return layout.ProcessRecord.from_buffer_copy(self.bytes, layout.HEADER_BYTES + slot * 128)


def read(path: Path, now_ns: int | None = None) -> MachineState:
    """The state of the machine in this file, at that moment of its clock. Raises BadInput if it is not a machine
    file."""
    file = _File(path)
    now = time.monotonic_ns() if now_ns is None else now_ns
    first, end = file.header.gpu_count, file.header.unit_count
    instances = [_instance(file, n, now) for n in range(first, end) if file.gpu(n).instance & layout.MIG_THERE]
    return MachineState(now_ns=now, gpus=tuple(_gpu(file, n, now) for n in range(first)), instances=tuple(instances))


def inject_xid(path: Path, uuid: str, code: int) -> None:
    """Create an XID event on a GPU. Processes that wait for events through NVML receive it."""
    file = _File(path)
    number = file.gpu_number(uuid)
    count = (file.gpu(number).xid >> 32) + 1
    _poke(file, number, layout.GpuRecord.xid.offset, (count & 0xFFFFFFFF) << 32 | code & 0xFFFFFFFF, 8)


def set_lost(path: Path, uuid: str, lost: bool) -> None:
    """Remove a GPU from the bus (NVML reports it, CUDA refuses it), or put it back."""
    file = _File(path)
    _poke(file, file.gpu_number(uuid), layout.GpuRecord.lost.offset, int(lost), 4)


def _poke(file: _File, number: int, offset: int, value: int, size: int) -> None:
    start = layout.gpu_offset(number) + offset
    file.bytes[start : start + size] = value.to_bytes(size, "little")


def _gpu(file: _File, number: int, now: int) -> SimulatedGpu:
    record = file.gpu(number)
    running_slot = record.turn.high >> layout.TURN_BITS & (layout.SLOTS - 1)
    unfinished = max(0, record.turn.low + (record.turn.high & ((1 << layout.TURN_BITS) - 1)) - now)
    processes = []
    busy = 0
    for slot in range(file.header.slots_used):
        cell = file.cell(number, slot)
        done, asked = cell.executed.low - (unfinished if slot == running_slot else 0), cell.work
        if percent := cell.mps & 0xFF:
            done, asked = (
                cell.lane.low - max(0, cell.lane.high - now) * percent // max(100, cell.promised),
                cell.lane.low,
            )
        busy += done
        process = file.process(slot)
        memory = cell.memory & 0xFFFFFFFF
        if process.identity and (memory or cell.contexts or asked != cell.base):
            processes.append(
                ProcessState(
                    pid=process.identity & layout.IDENTITY_PID_MASK,
                    name=process.name.decode(errors="replace"),
                    memory_mib=memory,
                    spilled_mib=cell.managed >> 32,
                    contexts=cell.contexts,
                    launches=cell.launches,
                    busy_ns=max(0, done - cell.base),
                    mps_percent=percent,
                    queued_ns=max(0, asked - done),
                )
            )
    return SimulatedGpu(
        uuid=record.uuid.decode(),
        memory_mib=record.memory_mib,
        used_mib=record.ledger.low & 0xFFFFFFFF,
        busy_ns=busy,
        turns=record.turn.high >> 36,
        contexts_made=record.contexts_made,
        lost=bool(record.lost),
        mig_enabled=bool(record.mig_mode & 1),
        processes=tuple(processes),
    )


def _instance(file: _File, number: int, now: int) -> InstanceState:
    record = file.gpu(number)
    parent = file.gpu(record.parent)
    return InstanceState(
        **structs.asdict(_gpu(file, number, now)),
        parent=parent.uuid.decode(),
        profile=parent.profiles[record.instance >> 8 & 0xFF].name.decode(),
        start=record.instance >> 16 & 0xFF,
    )
