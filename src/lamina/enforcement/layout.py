"""The bytes of `limits`, `usage`, `arbiter` and `signal`, as native/include/lamina_layout.h has them; a test compares
the two."""

import ctypes
from ctypes import c_char, c_int64, c_uint8, c_uint32, c_uint64

LIMITS_MAGIC = int.from_bytes(b"LAMLIMIT", "little")
USAGE_MAGIC = int.from_bytes(b"LAMUSAGE", "little")
ARBITER_MAGIC = int.from_bytes(b"LAMAARBI", "little")
SIGNAL_MAGIC = int.from_bytes(b"LAMSIGNL", "little")
VERSION = 1
MAX_DEVICES = 16
SLOTS = 1024
SHARES = 2048
UUID_BYTES = 48
BINS = 128
FIGURES = 128
HEEDED = 8
NEIGHBOR_BITS, NEIGHBOR_DEVICE_BITS = 24, 8
BIN_NS = 1_000_000
BIN_SHIFT = 28
BRIEF_SHIFT = 16
MAX_BRIEF = 0xFFF
MAX_OTHERS = 0xFFFF
KINDS = ("data", "managed", "pool", "array", "context", "module")
COMPUTE_POLICIES = ("none", "cap", "weight", "threads")
PID_BITS = 22
START_BITS = 26
NS_BITS = 15
CLEARING = 1 << 63
SHARE_OWN, SHARE_USE = 2, 3


class LimitRecord(ctypes.Structure):
    """One device of `limits`."""

    _fields_ = (
        ("uuid", c_char * UUID_BYTES),
        ("memory_bytes", c_uint64),
        ("context_bytes", c_uint64),
        ("cores_percent", c_uint32),
        ("compute_policy", c_uint32),
        ("physical_bytes", c_uint64),
        ("most_percent", c_uint32),
        ("reserved1", c_uint32),
        ("request_bytes", c_uint64),
        ("reserved", c_uint8 * 32),
    )


class LimitsFile(ctypes.Structure):
    """The whole of `limits`."""

    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("size", c_uint32),
        ("checksum", c_uint64),
        ("device_count", c_uint32),
        ("log_level", c_uint32),
        ("priority", c_uint32),
        ("flags", c_uint32),
        ("reserved", c_uint8 * 24),
        ("devices", LimitRecord * MAX_DEVICES),
    )


class SlotCompute(ctypes.Structure):
    """When one process makes one device work."""

    _fields_ = (
        ("busy_since", c_uint64),
        ("asked_at", c_uint64),
        ("waited_at", c_uint64),
        ("busy_ns", c_uint64),
        ("reserved", c_uint64 * 3),
    )


class SlotDevice(ctypes.Structure):
    """One device of one process."""

    _fields_ = (
        ("bytes", c_uint64 * len(KINDS)),
        ("charged", c_uint64),
        ("spilled", c_uint64),
        ("compute", SlotCompute),
        ("hosted", c_uint64),
    )


class Slot(ctypes.Structure):
    """One process; its devices follow."""

    _fields_ = (
        ("owner", c_uint64),
        ("image", c_uint64),
        ("stack", c_uint64),
        ("generation", c_uint32),
        ("measures", c_uint32),
        ("name", c_char * 16),
        ("reserved2", c_uint8 * 16),
    )


class UsageCompute(ctypes.Structure):
    """GPU time of the container on one device."""

    _fields_ = (
        ("due", c_uint64),
        ("refund_ns", c_int64),
        ("busy_ns", c_uint64),
        ("waited_ns", c_uint64),
        ("deferred_ns", c_uint64),
        ("deferred_at", c_uint64),
        ("used_at", c_uint64),
        ("launch_ns", c_uint64),
        ("occupied_ns", c_uint64),
        ("pause_ns", c_uint64),
        ("turns_taken", c_uint64),
        ("turn_until", c_uint64),
        ("reserved", c_uint64 * 4),
        ("bins", c_uint64 * BINS),
    )


class UsageDevice(ctypes.Structure):
    """One device of `usage`."""

    _fields_ = (
        ("uuid", c_char * UUID_BYTES),
        ("context_bytes", c_uint64),
        ("refusals", c_uint64),
        ("total", c_uint64),
        ("peak", c_uint64),
        ("measuring", c_uint64),
        ("reserved", c_uint64 * 5),
        ("compute", UsageCompute),
    )


class ShareRecord(ctypes.Structure):
    """A process's word about an allocation that processes share."""

    _fields_ = (
        ("holder", c_uint64),
        ("key", c_uint64),
        ("bytes", c_uint64),
        ("device", c_uint32),
        ("reserved", c_uint32),
    )


class UsageFile(ctypes.Structure):
    """The head of `usage`; the slots follow, then the shares."""

    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("device_count", c_uint32),
        ("size", c_uint64),
        ("slot_count", c_uint32),
        ("slot_stride", c_uint32),
        ("generation", c_uint64),
        ("slots_used", c_uint32),
        ("sweep", c_uint32),
        ("shares_used", c_uint32),
        ("reserved", c_uint32),
        ("figure_requests", c_uint64),
        ("devices", UsageDevice * MAX_DEVICES),
    )


class DecisionRecord(ctypes.Structure):
    """One device of `arbiter`."""

    _fields_ = (
        ("closed", c_uint64),
        ("watched", c_uint64),
        ("attention", c_uint64),
        ("rate_ppm", c_uint64),
        ("refund_ns", c_int64),
        ("memory_bytes", c_uint64),
        ("cores_percent", c_uint64),
        ("blocked_ns", c_uint64),
    )


class LendingRecord(ctypes.Structure):
    """What is decided about memory that is lent on one device."""

    _fields_ = (
        ("request_bytes", c_uint64),
        ("allowed_bytes", c_uint64),
        ("host_bytes", c_uint64),
        ("neighbors_borrow", c_uint64),
        ("window", c_uint64),
        ("turns", c_uint64),
        ("reserved", c_uint64 * 2),
    )


class Figures(ctypes.Structure):
    """What the processes of the first slots use of one device by the driver's figures."""

    _fields_ = (("slots", c_uint64 * FIGURES),)


class Heeded(ctypes.Structure):
    """Whose signals the container heeds on one device."""

    _fields_ = (("signals", c_uint64 * HEEDED),)


class ArbiterFile(ctypes.Structure):
    """The whole of `arbiter`."""

    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("device_count", c_uint32),
        ("heartbeat", c_uint64),
        ("figures_at", c_uint64),
        ("made_at", c_uint64),
        ("reserved", c_uint64 * 3),
        ("devices", DecisionRecord * MAX_DEVICES),
        ("figures", Figures * MAX_DEVICES),
        ("lendings", LendingRecord * MAX_DEVICES),
        ("heeded", Heeded * MAX_DEVICES),
    )


class SignalFile(ctypes.Structure):
    """The whole of `signal`."""

    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("device_count", c_uint32),
        ("reserved", c_uint64 * 6),
        ("working", c_uint32 * MAX_DEVICES),
    )


STRUCTURES: tuple[type[ctypes.Structure], ...] = (
    LimitRecord, LimitsFile, SlotCompute, SlotDevice, Slot, UsageCompute, UsageDevice, ShareRecord, UsageFile,
    DecisionRecord, LendingRecord, Figures, Heeded, ArbiterFile, SignalFile,
)  # fmt: skip


def slot_stride(devices: int) -> int:
    """Bytes from one slot to the next."""
    return ctypes.sizeof(Slot) + devices * ctypes.sizeof(SlotDevice)


def usage_bytes(devices: int) -> int:
    """Size of a usage file for this many devices."""
    return shares_offset(devices) + SHARES * ctypes.sizeof(ShareRecord)


def shares_offset(devices: int) -> int:
    """Where the shares of a usage file begin."""
    return ctypes.sizeof(UsageFile) + SLOTS * slot_stride(devices)


def checksum(limits: bytes) -> int:
    """FNV-1a of a limits file, its own checksum taken as zeros."""
    start = LimitsFile.checksum.offset
    value = 0xCBF29CE484222325
    for byte in limits[:start] + bytes(8) + limits[start + 8 :]:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value
