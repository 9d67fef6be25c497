"""Opaque parameters of NVIDIA's driver: how the containers of a request share its device.

A claim may say how the containers that share a device take turns: by time-slicing, with an interval, or by MPS, with
limits for each client. The last ones for a request apply.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from lamina.core.sharing import TimeSlice
from lamina.dra.names import base_request
from lamina.dra.opaque import SHARE_API, SHARE_CONFIG, check_fields, is_share_config, matching, own_parameters, read_mib
from lamina.errors import BadInput

_API = "resource.nvidia.com/v1beta1"
_KINDS = {"GpuConfig": "gpu", "MigDeviceConfig": "mig"}
"""The type of devices that each kind configures."""
_INTERVALS = ("Default", "Short", "Medium", "Long")
_MPS_FIELDS = (
    "defaultActiveThreadPercentage",
    "defaultPinnedDeviceMemoryLimit",
    "defaultPerDevicePinnedMemoryLimit",
    "multiUser",
)


class MpsParameters(Struct, frozen=True, kw_only=True):
    """The limits of each client, None where the parameters have none. `by_device` has those of single devices, by the
    number of the device in the request or by its UUID."""

    threads_percent: int | None = None
    memory_mib: int | None = None
    by_device: Mapping[str, int] = {}


class SharingParameters(Struct, frozen=True, kw_only=True):
    """How containers share the devices of a request: by turns, or by MPS if `mps` is set."""

    interval: TimeSlice = TimeSlice.DEFAULT
    mps: MpsParameters | None = None


def sharing_by_request(
    config: Iterable[Mapping[str, Any]], driver: str, requests: Mapping[str, str]
) -> dict[str, SharingParameters]:
    """How each request with parameters is shared, by the name that containers use. Raises BadInput for parameters that
    apply and are impossible.

    `config` is that of an allocation; `requests` are the results' requests with the type of their device, gpu or mig.
    """
    applying: dict[str, tuple[Any, str]] = {}
    for parameters, named in own_parameters(config, driver):
        if is_share_config(parameters):
            continue
        kind = _checked_kind(parameters)
        for request in matching(requests, named):
            device = requests[request]
            if device != _KINDS[kind]:
                if named:
                    raise BadInput(
                        f"request {request}: its device is of type {device}, which {kind} cannot configure; use "
                        f"{_kind_for(device)}"
                    )
                continue
            applying[request] = (parameters, kind)
    return {
        base_request(request): _sharing(parameters.get("sharing"), kind, f"request {request}: {kind}")
        for request, (parameters, kind) in applying.items()
    }


def _kind_for(device: str) -> str:
    return next(kind for kind, configured in _KINDS.items() if configured == device)


def _checked_kind(parameters: Any) -> str:
    if not isinstance(parameters, dict):
        raise BadInput("opaque parameters must be an object with apiVersion and kind")
    kind = parameters.get("kind")
    if parameters.get("apiVersion") != _API or kind not in _KINDS:
        raise BadInput(
            f"opaque parameters must be {' or '.join(_KINDS)} of {_API}, or {SHARE_CONFIG} of {SHARE_API}, got "
            f"{kind!r} of {parameters.get('apiVersion')!r}; Lamina configures no other devices"
        )
    check_fields(parameters, ("apiVersion", "kind", "sharing"), kind)
    return str(kind)


def _sharing(sharing: Any, kind: str, where: str) -> SharingParameters:
    if sharing is None:
        return SharingParameters()
    fields = ("strategy", "timeSlicingConfig", "mpsConfig") if kind == "GpuConfig" else ("strategy", "mpsConfig")
    check_fields(sharing, fields, f"{where}: sharing")
    strategy = sharing.get("strategy")
    if strategy not in ("TimeSlicing", "MPS"):
        raise BadInput(f"{where}: sharing.strategy must be TimeSlicing or MPS, got {strategy!r}")
    other = "mpsConfig" if strategy == "TimeSlicing" else "timeSlicingConfig"
    if sharing.get(other) is not None:
        raise BadInput(f"{where}: {other} cannot be combined with the strategy {strategy}")
    if strategy == "MPS":
        return SharingParameters(mps=_mps(sharing.get("mpsConfig"), f"{where}: mpsConfig"))
    return SharingParameters(interval=_interval(sharing.get("timeSlicingConfig"), f"{where}: timeSlicingConfig"))


def _interval(slicing: Any, where: str) -> TimeSlice:
    if slicing is None:
        return TimeSlice.DEFAULT
    check_fields(slicing, ("interval",), where)
    interval = slicing.get("interval", "Default")
    if interval not in _INTERVALS:
        raise BadInput(f"{where}: interval must be one of {', '.join(_INTERVALS)}, got {interval!r}")
    return TimeSlice(interval.lower())


def _mps(written: Any, where: str) -> MpsParameters:
    if written is None:
        return MpsParameters()
    check_fields(written, _MPS_FIELDS, where)
    percent = written.get("defaultActiveThreadPercentage")
    if percent is not None and (type(percent) is not int or not 1 <= percent <= 100):
        raise BadInput(f"{where}: defaultActiveThreadPercentage must be a number from 1 to 100, got {percent!r}")
    users = written.get("multiUser", False)
    if users is not False:
        raise BadInput(
            f"{where}: multiUser must be false, got {users!r}; the value mps.multiUser of the installation decides for "
            "all daemons"
        )
    memory = written.get("defaultPinnedDeviceMemoryLimit")
    devices = written.get("defaultPerDevicePinnedMemoryLimit") or {}
    if not isinstance(devices, dict):
        raise BadInput(f"{where}: defaultPerDevicePinnedMemoryLimit must be an object, got {devices!r}")
    return MpsParameters(
        threads_percent=percent,
        memory_mib=None if memory is None else read_mib(memory, f"{where}: defaultPinnedDeviceMemoryLimit"),
        by_device={
            key: read_mib(amount, f"{where}: defaultPerDevicePinnedMemoryLimit[{key}]")
            for key, amount in devices.items()
        },
    )
