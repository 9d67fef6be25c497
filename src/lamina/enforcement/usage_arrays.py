"""What a usage file says of GPU time, as arrays: the bins of its beginning, and the stamps of its slots."""

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lamina.enforcement import layout

Words = NDArray[np.int64]
_MAX_HELD = np.uint64(1 << 50)


def head_bytes(devices: int) -> int:
    """How much of the beginning of a usage file is about this many devices."""
    return layout.UsageFile.devices.offset + devices * ctypes.sizeof(layout.UsageDevice)


def bins(heads: bytes, devices: int) -> Words:
    """The bins in the beginnings of usage files, one after the other: by file and device, and by place."""
    found: Words = np.frombuffer(heads, _head(devices))["devices"]["bins"]
    return found.reshape(-1, layout.BINS)


def charges(heads: bytes, devices: int) -> Words:
    """busy_ns in the beginnings of usage files; by file and device."""
    found: Words = np.frombuffer(heads, _charge(devices))["devices"]["busy_ns"]
    return found.reshape(-1)


def stamps(slots: bytes, devices: int) -> Words:
    """busy_since, asked_at and waited_at; by device; by slot."""
    found: Words = np.frombuffer(slots, _slot(devices))["devices"]["stamps"]
    return found.T


def held(slots: bytes, devices: int) -> "NDArray[np.uint64]":
    """The bytes that all processes hold, by device; each word counts up to `_MAX_HELD`, so that no sum overflows."""
    words = np.frombuffer(slots, _memory(devices))["devices"]["bytes"]
    sums: NDArray[np.uint64] = np.minimum(words, _MAX_HELD).sum(axis=(0, 2), dtype=np.uint64)
    return sums


def hosted(slots: bytes, devices: int) -> "NDArray[np.uint64]":
    """The bytes that all processes keep on the host, by device; limited likewise."""
    words = np.frombuffer(slots, _memory(devices))["devices"]["hosted"]
    sums: NDArray[np.uint64] = np.minimum(words, _MAX_HELD).sum(axis=0, dtype=np.uint64)
    return sums


@lru_cache(maxsize=layout.MAX_DEVICES)
def _memory(devices: int) -> "np.dtype[np.void]":
    fields: Any = {
        "names": ["bytes", "hosted"],
        "formats": [("<u8", len(layout.KINDS)), "<u8"],
        "offsets": [layout.SlotDevice.bytes.offset, layout.SlotDevice.hosted.offset],
        "itemsize": ctypes.sizeof(layout.SlotDevice),
    }
    return _field("devices", (np.dtype(fields), (devices,)), ctypes.sizeof(layout.Slot), layout.slot_stride(devices))


@lru_cache(maxsize=layout.MAX_DEVICES)
def _head(devices: int) -> "np.dtype[np.void]":
    place = layout.UsageDevice.compute.offset + layout.UsageCompute.bins.offset
    device = _field("bins", ("<i8", layout.BINS), place, ctypes.sizeof(layout.UsageDevice))
    return _field("devices", (device, (devices,)), layout.UsageFile.devices.offset, head_bytes(devices))


@lru_cache(maxsize=layout.MAX_DEVICES)
def _charge(devices: int) -> "np.dtype[np.void]":
    place = layout.UsageDevice.compute.offset + layout.UsageCompute.busy_ns.offset
    device = _field("busy_ns", "<i8", place, ctypes.sizeof(layout.UsageDevice))
    return _field("devices", (device, (devices,)), layout.UsageFile.devices.offset, head_bytes(devices))


@lru_cache(maxsize=layout.MAX_DEVICES)
def _slot(devices: int) -> "np.dtype[np.void]":
    device = _field("stamps", ("<i8", 3), layout.SlotDevice.compute.offset, ctypes.sizeof(layout.SlotDevice))
    return _field("devices", (device, (devices,)), ctypes.sizeof(layout.Slot), layout.slot_stride(devices))


def _field(name: str, kind: Any, offset: int, size: int) -> "np.dtype[np.void]":
    """A record of `size` bytes with one field of interest."""
    record: Any = {"names": [name], "formats": [kind], "offsets": [offset], "itemsize": size}
    found: np.dtype[np.void] = np.dtype(record)
    return found
