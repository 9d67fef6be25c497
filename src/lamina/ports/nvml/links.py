"""How well two GPUs of a node are connected, in one number, from what NVML tells of PCIe and NVLink.

The numbers are those of NVIDIA's go-gpuallocator, which HAMi uses too: 10 to 60 for the common ancestor on PCIe, from
different processors to the same board, and 100 for each NVLink between the two. Links that lead to an NVSwitch reach
every GPU on it: there the two have as many as the one with fewer.
"""

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import pynvml as nvml

_ANCESTORS = {
    nvml.NVML_TOPOLOGY_SYSTEM: 10,
    nvml.NVML_TOPOLOGY_NODE: 20,
    nvml.NVML_TOPOLOGY_HOSTBRIDGE: 30,
    nvml.NVML_TOPOLOGY_MULTIPLE: 40,
    nvml.NVML_TOPOLOGY_SINGLE: 50,
    nvml.NVML_TOPOLOGY_INTERNAL: 60,
}
_PER_NVLINK = 100
_SWITCH = 2
"""NVML_NVLINK_DEVICE_TYPE_SWITCH"""


def scores(handles: Sequence[Any]) -> list[list[int]]:
    """A row for each GPU: its connection to each one, 0 to itself and where the driver does not tell."""
    nvlinks = [_nvlinks(handle) for handle in handles]
    addresses = [_address(handle) for handle in handles]
    rows = [[0] * len(handles) for _ in handles]
    for one in range(len(handles)):
        for other in range(one):
            links = min(_toward(nvlinks[one], addresses[other]), _toward(nvlinks[other], addresses[one]))
            rows[one][other] = rows[other][one] = _ancestor(handles[one], handles[other]) + _PER_NVLINK * links
    return rows


def _ancestor(one: Any, other: Any) -> int:
    try:
        return _ANCESTORS.get(nvml.nvmlDeviceGetTopologyCommonAncestor(one, other), 0)
    except nvml.NVMLError:
        return 0


def _nvlinks(handle: Any) -> list[str]:
    """For each active link the PCI address of the GPU at its other end; empty for a switch."""
    ends: list[str] = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        with suppress(nvml.NVMLError):
            if nvml.nvmlDeviceGetNvLinkState(handle, link):
                ends.append("" if _leads_to_switch(handle, link) else _remote_address(handle, link))
    return ends


def _leads_to_switch(handle: Any, link: int) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link) == _SWITCH)
    except nvml.NVMLError:
        return False


def _remote_address(handle: Any, link: int) -> str:
    return _lowered(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId)


def _address(handle: Any) -> str:
    try:
        return _lowered(nvml.nvmlDeviceGetPciInfo(handle).busId)
    except nvml.NVMLError:
        return "unknown"


def _lowered(bus_id: str | bytes) -> str:
    return (bus_id.decode() if isinstance(bus_id, bytes) else bus_id).lower()


def _toward(ends: list[str], address: str) -> int:
    """How many of the links lead to the GPU at the address, directly or over a switch."""
    return sum(end in ("", address) for end in ends)


def fabric(handle: Any) -> str:
    """The GPU's place among machines that share one NVLink fabric, `<cluster's UUID>.<clique>`; empty if in none."""
    info = nvml.c_nvmlGpuFabricInfo_v2_t()
    with suppress(nvml.NVMLError):
        nvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    cluster = bytes(info.clusterUuid)
    if info.state != nvml.NVML_GPU_FABRIC_STATE_COMPLETED or info.status != nvml.NVML_SUCCESS or not any(cluster):
        return ""
    return f"{UUID(bytes=cluster)}.{info.cliqueId}"
