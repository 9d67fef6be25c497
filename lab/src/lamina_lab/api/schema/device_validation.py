"""Validation of resource.k8s.io: claims, templates, classes, slices and rules, with the limits of Kubernetes 1.36."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.kubernetes.device_selectors import check
from lamina_lab.kubernetes.errors import StatusCause, invalid_value, required, unsupported_value
from lamina_lab.kubernetes.expressions import ExpressionError
from lamina_lab.kubernetes.quantities import parse

_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAME_RULE = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
_MAX_REQUESTS = _MAX_CONSTRAINTS = _MAX_CONFIGS = 32
_MAX_ALTERNATIVES = 8
_MAX_RESERVED = 256
_MAX_DEVICES, _MAX_COMPLEX_DEVICES = 128, 64
_MAX_COUNTER_SETS, _MAX_COUNTERS, _MAX_CONSUMED_SETS = 8, 32, 2
_MAX_ATTRIBUTES, _MAX_TAINTS, _MAX_CONDITIONS, _MAX_VALUES = 32, 16, 4, 10
_MAX_ATTRIBUTE = 64
_EFFECTS = ("None", "NoExecute", "NoSchedule")
_PLACES = ("allNodes", "nodeName", "nodeSelector", "perDeviceNodeSelection")


def claim(obj: Object) -> list[StatusCause]:
    reserved = (obj.get("status") or {}).get("reservedFor") or ()
    return _claim_spec(obj.get("spec") or {}, "spec") + _at_most(reserved, _MAX_RESERVED, "status.reservedFor")


def template(obj: Object) -> list[StatusCause]:
    return _claim_spec((obj.get("spec") or {}).get("spec") or {}, "spec.spec")


def device_class(obj: Object) -> list[StatusCause]:
    return _selectors(obj.get("spec") or {}, "spec")


def resource_slice(obj: Object) -> list[StatusCause]:
    spec = obj.get("spec") or {}
    causes = [required("spec.driver")] if not spec.get("driver") else []
    pool = spec.get("pool") or {}
    causes += [required("spec.pool.name")] if not pool.get("name") else []
    if int(pool.get("resourceSliceCount") or 0) < 1:
        causes.append(invalid_value("spec.pool.resourceSliceCount", pool.get("resourceSliceCount") or 0, "must be > 0"))
    devices, sets = spec.get("devices") or [], spec.get("sharedCounters") or []
    if devices and sets:
        causes.append(invalid_value("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    if sum(bool(spec.get(place)) for place in _PLACES) != 1:
        listed = ", ".join(f"`{place}`" for place in _PLACES)
        causes.append(invalid_value("spec", "", f"exactly one of {listed} is required"))
    limit = _MAX_COMPLEX_DEVICES if any(map(_is_complex, devices)) else _MAX_DEVICES
    causes += _at_most(devices, limit, "spec.devices") + _at_most(sets, _MAX_COUNTER_SETS, "spec.sharedCounters")
    causes += _unique_names(devices, "spec.devices") + _unique_names(sets, "spec.sharedCounters")
    for at, entry in enumerate(sets):
        causes += _counters(entry, f"spec.sharedCounters[{at}]")
    for at, device in enumerate(devices):
        causes += _device(device, f"spec.devices[{at}]")
    return causes


def taint_rule(obj: Object) -> list[StatusCause]:
    return _taint((obj.get("spec") or {}).get("taint") or {}, "spec.taint")


def _claim_spec(spec: Mapping[str, Any], at: str) -> list[StatusCause]:
    devices = spec.get("devices") or {}
    requests, where = devices.get("requests") or [], f"{at}.devices"
    causes = _at_most(requests, _MAX_REQUESTS, f"{where}.requests") + _unique_names(requests, f"{where}.requests")
    known = set()
    for number, request in enumerate(requests):
        known |= {request.get("name"), *_sub_names(request)}
        causes += _request(request, f"{where}.requests[{number}]")
    for field, limit in (("constraints", _MAX_CONSTRAINTS), ("config", _MAX_CONFIGS)):
        entries = devices.get(field) or []
        causes += _at_most(entries, limit, f"{where}.{field}")
        for number, entry in enumerate(entries):
            for name in entry.get("requests") or ():
                if name not in known:
                    detail = "must be the name of a request in the claim or the name of a request and a subrequest"
                    causes.append(invalid_value(f"{where}.{field}[{number}].requests", name, detail))
    for number, entry in enumerate(devices.get("constraints") or ()):
        if bool(entry.get("matchAttribute")) == bool(entry.get("distinctAttribute")):
            causes.append(required(f"{where}.constraints[{number}]", "exactly one attribute must be specified"))
    return causes


def _sub_names(request: Mapping[str, Any]) -> set[str]:
    return {f"{request.get('name')}/{sub.get('name')}" for sub in request.get("firstAvailable") or ()}


def _request(request: Mapping[str, Any], at: str) -> list[StatusCause]:
    exact, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if bool(exact) == bool(alternatives):
        return [required(at, "exactly one of `exactly` or `firstAvailable` is required")]
    if exact:
        return _wanted(exact, f"{at}.exactly")
    causes = _at_most(alternatives, _MAX_ALTERNATIVES, f"{at}.firstAvailable")
    causes += _unique_names(alternatives, f"{at}.firstAvailable")
    for number, alternative in enumerate(alternatives):
        causes += _wanted(alternative, f"{at}.firstAvailable[{number}]")
    return causes


def _wanted(wanted: Mapping[str, Any], at: str) -> list[StatusCause]:
    causes = [required(f"{at}.deviceClassName")] if not wanted.get("deviceClassName") else []
    mode = wanted.get("allocationMode", "ExactCount")
    if mode not in ("All", "ExactCount"):
        causes.append(unsupported_value(f"{at}.allocationMode", mode, ("All", "ExactCount")))
    elif mode == "All" and wanted.get("count"):
        detail = "must not be specified when allocationMode is 'All'"
        causes.append(invalid_value(f"{at}.count", wanted["count"], detail))
    elif mode == "ExactCount" and wanted.get("count", 1) < 1:
        causes.append(invalid_value(f"{at}.count", wanted["count"], "must be greater than zero"))
    return causes + _selectors(wanted, at)


def _selectors(owner: Mapping[str, Any], at: str) -> list[StatusCause]:
    causes = []
    for number, selector in enumerate(owner.get("selectors") or ()):
        where = f"{at}.selectors[{number}].cel.expression"
        expression = (selector.get("cel") or {}).get("expression")
        if not expression:
            causes.append(required(where))
            continue
        try:
            check(expression)
        except ExpressionError as error:
            causes.append(invalid_value(where, expression, f"compilation failed: {error}"))
    return causes


def _is_complex(device: Mapping[str, Any]) -> bool:
    return bool(device.get("taints") or device.get("consumesCounters"))


def _device(device: Mapping[str, Any], at: str) -> list[StatusCause]:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    causes = _at_most([*attributes, *capacity], _MAX_ATTRIBUTES, f"{at}.attributes and capacity")
    causes += _at_most(device.get("taints") or (), _MAX_TAINTS, f"{at}.taints")
    causes += _at_most(device.get("consumesCounters") or (), _MAX_CONSUMED_SETS, f"{at}.consumesCounters")
    for field in ("bindingConditions", "bindingFailureConditions"):
        causes += _at_most(device.get(field) or (), _MAX_CONDITIONS, f"{at}.{field}")
    for name, value in attributes.items():
        causes += _attribute(value, f"{at}.attributes[{name}]")
    for name, entry in capacity.items():
        causes += _capacity(entry, f"{at}.capacity[{name}]", shareable=bool(device.get("allowMultipleAllocations")))
    for number, use in enumerate(device.get("consumesCounters") or ()):
        causes += _counters(use, f"{at}.consumesCounters[{number}]")
    for number, taint in enumerate(device.get("taints") or ()):
        causes += _taint(taint, f"{at}.taints[{number}]")
    return causes


def _taint(taint: Mapping[str, Any], at: str) -> list[StatusCause]:
    causes = [] if taint.get("key") else [required(f"{at}.key")]
    if taint.get("effect") not in _EFFECTS:
        causes.append(unsupported_value(f"{at}.effect", taint.get("effect", ""), _EFFECTS))
    return causes


def _attribute(value: Mapping[str, Any], at: str) -> list[StatusCause]:
    given = [kind for kind in ("bool", "int", "string", "version") if value.get(kind) is not None]
    if len(given) != 1:
        return [invalid_value(at, dict(value), "exactly one value must be specified")]
    text = value[given[0]]
    if isinstance(text, str) and len(text) > _MAX_ATTRIBUTE:
        return [invalid_value(at, text, f"may not be more than {_MAX_ATTRIBUTE} bytes")]
    return []


def _capacity(entry: Mapping[str, Any], at: str, *, shareable: bool) -> list[StatusCause]:
    """The policy must allow its own default, and every allowed amount must be within the capacity."""
    policy, total = entry.get("requestPolicy"), parse(entry.get("value"))
    if not policy:
        return []
    where = f"{at}.requestPolicy"
    if not shareable:
        return [invalid_value(where, "", "allowMultipleAllocations must be true")]
    default, allowed = parse(policy.get("default")), policy.get("validRange")
    values = [parse(value) for value in policy.get("validValues") or ()]
    if (allowed or values) and default is None:
        return [required(f"{where}.default")]
    if values:
        causes = _at_most(values, _MAX_VALUES, f"{where}.validValues")
        return causes + ([] if default in values else [invalid_value(f"{where}.default", default, "not a valid value")])
    if not allowed:
        return []
    low, high, step = (parse(allowed.get(name)) for name in ("min", "max", "step"))
    causes = [required(f"{where}.validRange.min")] if low is None else []
    if high is not None and total is not None and high > total:
        causes.append(invalid_value(f"{where}.validRange.max", str(high), f"exceeds the capacity {total}"))
    for name, value in (("default", default), ("validRange.max", high)):
        if low is not None and value is not None and value < low:
            causes.append(invalid_value(f"{where}.{name}", str(value), f"is less than min {low}"))
        if low is not None and value is not None and step and (value - low) % step:
            causes.append(invalid_value(f"{where}.{name}", str(value), f"is not a multiple of step {step} from min"))
    return causes


def _counters(entry: Mapping[str, Any], at: str) -> list[StatusCause]:
    found = entry.get("counters") or {}
    return _at_most(found, _MAX_COUNTERS, f"{at}.counters") if found else [required(f"{at}.counters")]


def _unique_names(entries: Sequence[Mapping[str, Any]], at: str) -> list[StatusCause]:
    causes, seen = [], set()
    for number, entry in enumerate(entries):
        name = entry.get("name", "")
        if not name:
            causes.append(required(f"{at}[{number}].name"))
        elif len(name) > 63 or not _LABEL.fullmatch(name):
            causes.append(invalid_value(f"{at}[{number}].name", name, _NAME_RULE))
        elif name in seen:
            causes.append(StatusCause(f"{at}[{number}].name", f'Duplicate value: "{name}"', "FieldValueDuplicate"))
        seen.add(name)
    return causes


def _at_most(entries: Iterable[Any], limit: int, at: str) -> list[StatusCause]:
    count = len(list(entries))
    detail = f"Too many: {count}: must have at most {limit} items"
    return [StatusCause(at, detail, "FieldValueTooMany")] if count > limit else []
