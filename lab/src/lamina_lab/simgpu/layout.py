"""The layout of the machine file, as in native/include/simgpu_layout.h; tests compare them field by field."""

import ctypes
from ctypes import c_char, c_int32, c_uint8, c_uint16, c_uint32, c_uint64

MAGIC = int.from_bytes(b"LSIMGPU1", "little")
VERSION = 1
MAX_GPUS = 16
MIG_UNITS = 7
MIG_PROFILES = 12
MIG_THERE = 1 << 63
NO_ECC = 2
"""Instead of whether ECC is on, where the memory has none."""
"""Of the word `instance`: there is one (native/simgpu/core/mig.h)."""
SLOTS = 1024
LOG = 8192
HISTORY = 16
HEADER_BYTES = 4096
RECORD_BYTES = 2048
IDENTITY_PID_MASK = (1 << 22) - 1

TURN_BITS = 25
"""Of the word of a turn, those that have its duration in ns; its slot follows."""


class Header(ctypes.Structure):
    """The first bytes of the file; offsets are from its start."""

    _fields_ = (
        ("magic", c_uint64),
        *[(name, c_uint32) for name in ("version", "gpu_count", "cuda_version", "context_us")],
        *[(name, c_uint64) for name in ("size", "kernel_ns", "host_mib", "processes", "gpus", "gpu_stride")],
        *[(name, c_uint32) for name in ("slots_used", "allocation_us")],
        ("swept_at", c_uint64),
        ("driver", c_char * 32),
        ("nvml", c_char * 32),
        ("unit_count", c_uint32),
        ("init_us", c_uint32),
        ("unified", c_uint32),
        ("padding", c_uint32),
    )


class ProcessRecord(ctypes.Structure):
    """A process slot; `identity` is 0 while it is free."""

    _fields_ = (
        ("identity", c_uint64),
        ("image", c_uint64),
        ("since_ns", c_uint64),
        ("name", c_char * 104),
    )


class PairRecord(ctypes.Structure):
    """A 128-bit word of two halves."""

    _fields_ = (("low", c_uint64), ("high", c_uint64))


_NUMBERS = (
    "index", "memory_mib", "context_mib", "sm_count", "compute_major", "compute_minor", "threads_per_sm", "cuda_cores",
    "architecture", "brand", "power_limit_mw", "power_idle_mw", "temperature", "pci_device", "pci_subsystem",
    "pci_domain", "pci_bus", "pci_slot", "pcie_generation", "sm_clock_mhz", "memory_clock_mhz", "bus_width", "l2_bytes",
    "ecc", "persistence", "mig_capable", "bar1_mib", "shared_per_sm",
)  # fmt: skip


class MigProfileRecord(ctypes.Structure):
    """One kind of MIG instance that a GPU supports."""

    _fields_ = (
        ("name", c_char * 24),
        ("id", c_uint32),
        ("memory_mib", c_uint32),
        ("sms", c_uint16),
        ("starts", c_uint16),
        *[(name, c_uint8) for name in ("index", "slices", "size", "most", "media")],
        *[(name, c_uint8) for name in ("copy_engines", "decoders", "encoders", "jpeg", "ofa")],
        ("padding", c_uint8 * 2),
    )


class GpuRecord(ctypes.Structure):
    """The record of a GPU or a MIG instance: its properties, and its current memory and time counters."""

    _fields_ = (
        ("uuid", c_char * 48),
        ("name", c_char * 96),
        ("bus_id", c_char * 32),
        ("serial", c_char * 32),
        ("model", c_char * 32),
        *[(name, c_uint32) for name in _NUMBERS],
        ("numa", c_int32),
        *[(name, c_uint32) for name in ("contexts_made", "nvlinks", "bridge")],
        ("xid", c_uint64),
        ("lost", c_uint32),
        ("time_slice", c_uint32),
        ("ledger", PairRecord),
        ("turn", PairRecord),
        *[(name, c_uint32) for name in ("mig_mode", "first_unit", "mig_slices", "mig_media", "mig_profiles", "parent")],
        ("instance", c_uint64),
        ("profiles", MigProfileRecord * MIG_PROFILES),
        ("compute_mode", c_uint32),
        ("default_slice_us", c_uint32),
        ("switch_us", c_uint32),
        ("reserved", c_uint32),
    )


class LogEntry(ctypes.Structure):
    """One time slice of the past."""

    _fields_ = (("start", c_uint64), ("done_after", c_uint64), ("turn", c_uint64), ("reserved", c_uint64))


class Cell(ctypes.Structure):
    """One process on one GPU: memory held, GPU time requested and used."""

    _fields_ = (
        *[(name, c_uint64) for name in ("memory", "work", "ready_at", "base")],
        ("executed", PairRecord),
        ("contexts", c_uint32),
        ("padding", c_uint32),
        ("launches", c_uint64),
        ("history", c_uint64 * HISTORY),
        ("managed", c_uint64),
        ("touched_at", c_uint64),
        ("cgroup", c_uint64),
        ("mps", c_uint64),
        ("lane", PairRecord),
        ("promised", c_uint64),
        ("reserved", c_uint64),
    )


STRUCTURES: tuple[type[ctypes.Structure], ...] = (Header, ProcessRecord, MigProfileRecord, GpuRecord, LogEntry, Cell)
GPU_STRIDE = RECORD_BYTES + LOG * ctypes.sizeof(LogEntry) + SLOTS * ctypes.sizeof(Cell)


def gpu_offset(number: int) -> int:
    """The offset of the record of unit `number`: the GPUs come first, then room for MIG instances."""
    return HEADER_BYTES + SLOTS * ctypes.sizeof(ProcessRecord) + number * GPU_STRIDE


def cell_offset(number: int, slot: int) -> int:
    """The offset of the cell of process slot `slot` on unit `number`."""
    return gpu_offset(number) + RECORD_BYTES + LOG * ctypes.sizeof(LogEntry) + slot * ctypes.sizeof(Cell)


def file_size(units: int) -> int:
    """The size of a machine file with this many units, in bytes; most of them are never touched."""
    return gpu_offset(units)
