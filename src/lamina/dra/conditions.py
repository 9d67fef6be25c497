"""Binding conditions: the scheduler binds a pod once the devices of its claims are prepared, or tries another node.

A device names the conditions for which the scheduler waits, and those on which it gives up. The agent reports them in
the status of the claim, by device.
"""

from collections.abc import Mapping
from typing import Any

from lamina.dra.claims import allocated

PREPARED, CANNOT_PREPARE = "lamina.dev/Prepared", "lamina.dev/CannotPrepare"
_MAX_MESSAGE = 1024


def with_conditions(device: Mapping[str, Any]) -> dict[str, Any]:
    """The device of a slice, which the scheduler binds only after it is prepared."""
    return {
        **device,
        "bindsToNode": True,
        "bindingConditions": [PREPARED],
        "bindingFailureConditions": [CANNOT_PREPARE],
    }


def awaited(claim: Mapping[str, Any], driver: str, pool: str) -> list[Mapping[str, Any]]:
    """The allocated devices of this driver and pool for which the scheduler still waits."""
    reported = {
        _key(entry): {each["type"] for each in entry.get("conditions") or () if each.get("status") == "True"}
        for entry in _status(claim).get("devices") or ()
    }
    return [
        result
        for result in allocated(claim, driver, pool)
        if PREPARED in (result.get("bindingConditions") or ())
        and not reported.get(_key(result), set()) & {PREPARED, CANNOT_PREPARE}
    ]


def reported_devices(claim: Mapping[str, Any], driver: str, pool: str, failure: str, when: str) -> list[dict[str, Any]]:
    """All devices of the claim's status, those that are awaited with their condition: that they are prepared, or the
    `failure`. `when` is the time in RFC 3339."""
    condition = {
        "type": CANNOT_PREPARE if failure else PREPARED,
        "status": "True",
        "reason": "CannotPrepare" if failure else "Prepared",
        "message": failure[:_MAX_MESSAGE] or "the device is ready for the containers of the claim",
        "lastTransitionTime": when,
    }
    devices = {_key(entry): dict(entry) for entry in _status(claim).get("devices") or ()}
    for result in awaited(claim, driver, pool):
        known = devices.get(_key(result)) or {name: result[name] for name in _NAMES if result.get(name)}
        devices[_key(result)] = {**known, "conditions": [*(known.get("conditions") or ()), condition]}
    return list(devices.values())


_NAMES = ("driver", "pool", "device", "shareID")


def _key(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get(name) or "" for name in _NAMES)


def _status(claim: Mapping[str, Any]) -> Mapping[str, Any]:
    return claim.get("status") or {}
