"""Opaque parameters of NVIDIA's driver, decoded strictly: what cannot be done is refused, never ignored.

A claim may say how the containers that share a device take turns: by time-slicing, with an interval, or by MPS, with
limits for each client. Parameters of a class come before those of the claim, and the last ones for a request apply.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from lamina.dra.names import base_request
from lamina.errors import BadInput
from lamina.model.kube_quantity import parse_quantity
from lamina.model.quantities import MIB
from lamina.model.sharing import TimeSlice

_API = "resource.nvidia.com/v1beta1"
_KINDS = {"GpuConfig": "gpu", "MigDeviceConfig": "mig"}
"""The type of devices that each kind configures."""
_INTERVALS = ("Default", "Short", "Medium", "Long")
_ORDER = ("FromClass", "FromClaim")
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
    entries = [each for each in config if (each.get("opaque") or {}).get("driver") == driver]
    for entry in sorted(entries, key=lambda each: _ORDER.index(each.get("source", "FromClaim"))):
        parameters = entry["opaque"].get("parameters")
        kind = _checked_kind(parameters)
        named = entry.get("requests") or ()
        for request, device in requests.items():
            if named and not {request, base_request(request)} & set(named):
                continue
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
            f"opaque parameters must be {' or '.join(_KINDS)} of {_API}, got {kind!r} of "
            f"{parameters.get('apiVersion')!r}; Lamina configures no other devices"
        )
    _check_fields(parameters, ("apiVersion", "kind", "sharing"), kind)
    return str(kind)


def _sharing(sharing: Any, kind: str, where: str) -> SharingParameters:
    if sharing is None:
        return SharingParameters()
    fields = ("strategy", "timeSlicingConfig", "mpsConfig") if kind == "GpuConfig" else ("strategy", "mpsConfig")
    _check_fields(sharing, fields, f"{where}: sharing")
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
    _check_fields(slicing, ("interval",), where)
    interval = slicing.get("interval", "Default")
    if interval not in _INTERVALS:
        raise BadInput(f"{where}: interval must be one of {', '.join(_INTERVALS)}, got {interval!r}")
    return TimeSlice(interval.lower())


def _mps(written: Any, where: str) -> MpsParameters:
    if written is None:
        return MpsParameters()
    _check_fields(written, _MPS_FIELDS, where)
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
        memory_mib=None if memory is None else _mib(memory, f"{where}: defaultPinnedDeviceMemoryLimit"),
        by_device={
            key: _mib(amount, f"{where}: defaultPerDevicePinnedMemoryLimit[{key}]") for key, amount in devices.items()
        },
    )


def _mib(written: Any, where: str) -> int:
    """Rounded down: MPS takes whole MiB, and a client never gets more than the parameters allow."""
    amount = int(parse_quantity(written, where=where).value // MIB)
    if amount < 1:
        raise BadInput(f"{where} must be at least 1Mi, got {written!r}")
    return amount


def _check_fields(value: Any, known: tuple[str, ...], where: str) -> None:
    if not isinstance(value, dict):
        raise BadInput(f"{where} must be an object, got {value!r}")
    for field in value:
        if field not in known:
            raise BadInput(f"{where}: unknown field {field!r}; known are {', '.join(known)}")
