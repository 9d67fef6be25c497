"""Opaque parameters of NVIDIA's driver, decoded strictly: what cannot be done is refused, never ignored.

A claim may say how the containers that share a device take turns. Lamina holds the limits of each share itself, so
only the driver's own turns remain: time-slicing with its usual interval. Parameters of a class come before those of
the claim, and the last ones for a request apply.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lamina.dra.names import base_request
from lamina.errors import BadInput

_API = "resource.nvidia.com/v1beta1"
_KINDS = {"GpuConfig": "gpu", "MigDeviceConfig": "mig"}
"""The type of devices that each kind configures."""
_INTERVALS = ("Default", "Short", "Medium", "Long")
_ORDER = ("FromClass", "FromClaim")


def check_parameters(config: Iterable[Mapping[str, Any]], driver: str, requests: Mapping[str, str]) -> None:
    """Raises BadInput unless the parameters that apply to each request are possible.

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
    for request, (parameters, kind) in applying.items():
        _check_sharing(parameters.get("sharing"), kind, f"request {request}: {kind}")


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


def _check_sharing(sharing: Any, kind: str, where: str) -> None:
    if sharing is None:
        return
    fields = ("strategy", "timeSlicingConfig", "mpsConfig") if kind == "GpuConfig" else ("strategy", "mpsConfig")
    _check_fields(sharing, fields, f"{where}: sharing")
    strategy = sharing.get("strategy")
    if strategy == "MPS":
        raise BadInput(
            f"{where}: Lamina shares no device of a claim by MPS; request capacity of memory and cores instead, which "
            "it enforces"
        )
    if strategy != "TimeSlicing":
        raise BadInput(f"{where}: sharing.strategy must be TimeSlicing or MPS, got {strategy!r}")
    if sharing.get("mpsConfig") is not None:
        raise BadInput(f"{where}: mpsConfig cannot be combined with the strategy TimeSlicing")
    slicing = sharing.get("timeSlicingConfig")
    if slicing is None:
        return
    _check_fields(slicing, ("interval",), f"{where}: timeSlicingConfig")
    interval = slicing.get("interval", "Default")
    if interval not in _INTERVALS:
        raise BadInput(f"{where}: interval must be one of {', '.join(_INTERVALS)}, got {interval!r}")
    if interval != "Default":
        raise BadInput(
            f"{where}: the interval {interval} would apply to all claims on the GPU; use Default, or set the interval "
            "of the node in Lamina's configuration"
        )


def _check_fields(value: Any, known: tuple[str, ...], where: str) -> None:
    if not isinstance(value, dict):
        raise BadInput(f"{where} must be an object, got {value!r}")
    for field in value:
        if field not in known:
            raise BadInput(f"{where}: unknown field {field!r}; known are {', '.join(known)}")
