"""The driver's own limits on the memory of a cgroup (since R615), which nvidia-ml-py does not have yet.

Structures and meanings as in nvml.h of CUDA 13.4 and later. The soft limit is left at 0: it is a guarantee that nothing
asked for, MPS ends clients that are over it, and it must be 0 before a cgroup is removed.
"""

import ctypes
from pathlib import Path
from typing import Any

import pynvml as nvml

UNLIMITED = 0xFFFF_FFFF_FFFF_FFFF


class _Set(ctypes.Structure):
    _fields_ = (("nameSpace", ctypes.c_char_p), ("softLimit", ctypes.c_ulonglong), ("hardLimit", ctypes.c_ulonglong))


class _Get(ctypes.Structure):
    _fields_ = (*_Set._fields_, ("currentUsed", ctypes.c_ulonglong))


def supported(handle: Any, cgroup: Path) -> bool:
    """Whether the driver can limit cgroups on this GPU; `cgroup` is any that exists."""
    try:
        get(handle, cgroup)
    except nvml.NVMLError as error:
        return bool(error.value == nvml.NVML_ERROR_NOT_FOUND)
    return True


def get(handle: Any, cgroup: Path) -> int:
    """The hard limit in bytes. Raises NVMLError, NOT_FOUND where none was ever set."""
    limits = _Get(nameSpace=str(cgroup).encode())
    _call("nvmlDeviceGetMemoryLimits_v1", handle, limits)
    return int(limits.hardLimit)


def set_hard(handle: Any, cgroup: Path, limit: int) -> None:
    """Hold the cgroup to so many bytes; UNLIMITED ends that. Raises NVMLError."""
    _call("nvmlDeviceSetMemoryLimits_v1", handle, _Set(nameSpace=str(cgroup).encode(), softLimit=0, hardLimit=limit))


def _call(name: str, handle: Any, limits: ctypes.Structure) -> None:
    code = nvml._nvmlGetFunctionPointer(name)(handle, ctypes.byref(limits))
    if code != nvml.NVML_SUCCESS:
        raise nvml.NVMLError(code)
