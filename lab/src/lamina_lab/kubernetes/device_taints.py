"""Taints of devices: those of their slice, and those that DeviceTaintRules add."""

from collections.abc import Iterable, Mapping
from typing import Any

from lamina.dra.selectors import selects
from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.resource_slices import newest_slices


def added_taints(rules: Iterable[Object], result: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The taints that rules add to a device."""
    return tuple(taint_of(rule) for rule in rules if selects(rule, result))


def taint_of(rule: Object) -> Mapping[str, Any]:
    """The taint of a rule, which counts from its creation if it does not say from when."""
    return {"timeAdded": objects.meta(rule).get("creationTimestamp", ""), **objects.spec(rule)["taint"]}


def taints_of_slice(slices: Iterable[Object], result: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The taints with which a device is published, in the newest generation of its pool."""
    for entry in newest_slices(slices).get((result["driver"], result["pool"]), ()):
        for device in objects.spec(entry).get("devices") or ():
            if device["name"] == result["device"]:
                return tuple(device.get("taints") or ())
    return ()
