"""Conditions for which the scheduler waits, as the lab's scheduler reads them."""

from typing import Any

import pytest

from lamina.dra.conditions import CANNOT_PREPARE, PREPARED, awaited, reported_devices, with_conditions
from lamina.dra.names import DRIVER
from lamina_lab.api.schema.device_validation import resource_slice
from lamina_lab.scheduler.claims.binding import NotPrepared, conditions_hold

NOW = "2026-01-02T03:04:05Z"
OTHER = {"driver": "nic.example.com", "pool": "node-1", "device": "nic-0", "conditions": []}


def result(device: str = "gpu-0", *, pool: str = "node-1", conditions: bool = True, **more: Any) -> dict[str, Any]:
    named = with_conditions({}) if conditions else {}
    named.pop("bindsToNode", None)
    return {"request": "r", "driver": DRIVER, "pool": pool, "device": device, **named, **more}


def claim(*results: dict[str, Any], devices: Any = None) -> dict[str, Any]:
    status = {"allocation": {"devices": {"results": list(results)}}, "devices": devices}
    return {"metadata": {"namespace": "default", "name": "c", "uid": "u"}, "status": status}


def reported(of: dict[str, Any], failure: str = "") -> dict[str, Any]:
    devices = reported_devices(of, DRIVER, "node-1", failure, NOW)
    return {**of, "status": {**of["status"], "devices": devices}}


def test_the_api_server_takes_devices_with_conditions() -> None:
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    device = with_conditions({"name": "gpu-0"})
    spec = {"driver": DRIVER, "nodeName": "node-1", "pool": pool, "devices": [device]}
    assert resource_slice({"metadata": {"name": "s"}, "spec": spec}) == []


def test_the_scheduler_waits_until_all_devices_are_reported() -> None:
    waiting = claim(result(shareID="one"), result(shareID="two"))
    assert not conditions_hold(waiting) and len(awaited(waiting, DRIVER, "node-1")) == 2
    ready = reported(waiting)
    assert conditions_hold(ready) and awaited(ready, DRIVER, "node-1") == []
    (first, second) = ready["status"]["devices"]
    assert (first["shareID"], second["shareID"]) == ("one", "two")
    assert first["conditions"][0]["type"] == PREPARED and first["conditions"][0]["lastTransitionTime"] == NOW


def test_the_scheduler_gives_up_with_the_reason() -> None:
    failed = reported(claim(result()), "GPU 0 is in use by process 7")
    assert awaited(failed, DRIVER, "node-1") == []
    with pytest.raises(NotPrepared, match="device gpu-0 of claim default/c cannot be used: GPU 0 is in use by process"):
        conditions_hold(failed)
    assert failed["status"]["devices"][0]["conditions"][0]["type"] == CANNOT_PREPARE


def test_devices_of_other_drivers_and_nodes_and_without_conditions_are_left_alone() -> None:
    for each in (result(pool="node-2"), result(conditions=False), {**result(), "driver": "nic.example.com"}):
        assert awaited(claim(each), DRIVER, "node-1") == []
    assert awaited({"metadata": {}}, DRIVER, "node-1") == []
    both = reported(claim(result(), devices=[OTHER]))
    assert both["status"]["devices"][0] == OTHER and len(both["status"]["devices"]) == 2


def test_conditions_that_a_device_has_already_are_kept() -> None:
    network = {"driver": DRIVER, "pool": "node-1", "device": "gpu-0", "conditions": [{"type": "x", "status": "True"}]}
    (device,) = reported(claim(result(), devices=[network]))["status"]["devices"]
    assert [each["type"] for each in device["conditions"]] == ["x", PREPARED]
