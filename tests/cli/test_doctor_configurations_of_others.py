"""`lamina doctor` names ConfigMaps of other systems that say more than the configuration in force."""

import json

import pytest

from lamina.operations.doctor.examine import examine
from lamina.operations.doctor.finding import State
from lamina.ports.kube import CONFIG_MAPS, Object, Refused
from lamina.ports.kube.resources import Resource
from tests.cli.doctor_patient import Patient

ROW = "configuration of others"
SPREAD = "tiers: [{plugins: [{name: deviceshare, arguments: {deviceshare.SchedulePolicy: spread}}]}]"
SCHEDULER = ("volcano-system", "volcano-scheduler-configmap", "volcano-scheduler.conf")
DEVICES = ("kube-system", "volcano-vgpu-device-config", "device-config.yaml")


def config_map(place: tuple[str, str, str], text: str) -> Object:
    namespace, name, key = place
    return {"metadata": {"name": name, "namespace": namespace}, "data": {key: text}}


async def found_with(*objects: Object, text: str = "") -> list[str]:
    patient = Patient()
    patient.text = text
    for each in objects:
        await patient.kube.create(CONFIG_MAPS, each)
    await patient.findings()
    rows = [row for row in await examine(patient.kube) if row.check == ROW]
    assert {row.state for row in rows} <= {State.WARNING}
    return [f"{row.found}. {row.fix}" for row in rows]


async def test_what_volcanos_scheduler_is_set_to_is_not_read_until_it_is_converted() -> None:
    theirs = config_map(SCHEDULER, SPREAD)
    (row,) = await found_with(theirs)
    assert row.startswith(
        "ConfigMap volcano-system/volcano-scheduler-configmap is not read: placement.nodePolicy, placement.gpuPolicy. "
        "kubectl -n volcano-system get configmap volcano-scheduler-configmap -o yaml > theirs.yaml; "
        "lamina config convert theirs.yaml; "
    )
    assert await found_with(theirs, text="placement: {nodePolicy: spread, gpuPolicy: spread}") == []
    (row,) = await found_with(theirs, text="placement: {nodePolicy: spread}")
    assert "is not read: placement.gpuPolicy. " in row


@pytest.mark.parametrize("text", ['actions: "enqueue, allocate"', "", "tiers: []"])
async def test_one_that_says_nothing_of_gpus_is_not_worth_a_row(text: str) -> None:
    assert await found_with(config_map(SCHEDULER, text)) == []


async def test_each_object_has_its_row() -> None:
    devices = json.dumps({"nvidia": {"deviceSplitCount": 3, "gpuMemoryFactor": 1}})
    first, second = await found_with(config_map(DEVICES, devices), config_map(SCHEDULER, SPREAD))
    assert "volcano-scheduler-configmap" in first
    assert "kube-system/volcano-vgpu-device-config is not read: sharing.slots. " in second


async def test_one_that_cannot_be_converted_says_why() -> None:
    (row,) = await found_with(config_map(SCHEDULER, "tiers: 5"))
    assert "it cannot be converted: ConfigMap volcano-system/volcano-scheduler-configmap" in row
    assert "tiers must be a list of tiers with plugins, got 5" in row


async def test_who_may_not_read_them_gets_the_other_rows() -> None:
    def forbid(resource: Resource, name: str) -> Refused | None:
        return Refused("forbidden") if (resource, name) != (CONFIG_MAPS, "lamina") and resource == CONFIG_MAPS else None

    patient = Patient()
    patient.kube.failing["get"] = forbid
    found = await patient.findings()
    assert found["configuration"].state == State.OK and ROW not in found
