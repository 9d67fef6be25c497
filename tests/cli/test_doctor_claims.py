"""`lamina doctor` about drivers for ResourceClaims."""

from typing import Any, get_args

import pytest

from lamina.core.field_types import ByClaimRule
from lamina.dra.names import DRIVER, HAMI_DRIVER, device_classes
from lamina.dra.slices import DIGEST
from lamina.operations.doctor.claims import claim_drivers, device_classes_of_claims
from lamina.operations.doctor.finding import Finding, State
from lamina.ports.kube import RESOURCE_SLICES, NotFound, Object
from tests.cli.doctor_patient import Patient


def slice_(node: str = "n", driver: str = DRIVER, *, own: bool = True, devices: int = 1) -> Object:
    annotations = {DIGEST: "x"} if own else {}
    listed = [{"name": f"gpu-{at}"} for at in range(devices)]
    spec = {"driver": driver, "nodeName": node, "pool": {"name": node, "generation": 1}, "devices": listed}
    return {"metadata": {"name": f"{node}-{driver}-{own}", "annotations": annotations}, "spec": spec}


def driver_pod(
    container: str = "gpus", image: str = "nvcr.io/nvidia/k8s-dra-driver-gpu:v25", node: str = "n"
) -> Object:
    spec = {"nodeName": node, "containers": [{"name": container, "image": image}]}
    return {"metadata": {"name": "plugin", "namespace": "nvidia"}, "spec": spec}


def found(slices: list[Object], pods: Any = (), served: tuple[str, ...] = ("n",)) -> dict[str, Finding]:
    return {each.check: each for each in claim_drivers(slices, list(pods), served)}


@pytest.mark.parametrize("rule", get_args(get_args(ByClaimRule)[0]))
def test_pods_by_claim_need_devices_that_are_offered_to_claims(rule: ByClaimRule) -> None:
    offered = {each.check: each for each in claim_drivers([slice_()], [], ("n",), rule)}
    assert offered["claims"].state is State.OK
    without = {each.check: each for each in claim_drivers([], [], ("n",), rule)}
    assert ("claims" in without) == (rule != "never")
    if rule != "never":
        assert without["claims"].found.startswith(f"admission.byClaim is {rule}, but no node offers devices")


def test_without_drivers_nothing_is_said_of_claims() -> None:
    assert {name: each.state for name, each in found([]).items()} == {"other drivers for claims": State.OK}


@pytest.mark.parametrize("driver", [DRIVER, HAMI_DRIVER])
def test_a_second_driver_on_a_node_is_found_by_its_slices(driver: str) -> None:
    finding = found([slice_(), slice_(driver=driver, own=False)])["other drivers for claims"]
    assert (finding.state, finding.found) == (State.FAILED, f"{driver} on n")
    assert "kubelet uses the driver of a name that registered last" in finding.fix


def test_a_second_driver_of_a_chosen_name_is_found() -> None:
    slices = [slice_(driver="gpu.example.com"), slice_(driver="gpu.example.com", own=False)]
    assert found(slices)["other drivers for claims"].state is State.FAILED


@pytest.mark.parametrize(
    "harmless",
    [
        slice_(own=False, node="elsewhere"),
        slice_(own=False, driver="dra.cpu"),
        slice_(own=False, driver="compute-domain.nvidia.com"),
    ],
)
def test_drivers_of_other_devices_and_nodes_are_harmless(harmless: Object) -> None:
    assert found([slice_(), harmless])["other drivers for claims"].state is State.OK


def test_a_second_driver_is_found_by_its_pod_before_it_has_published() -> None:
    finding = found([], [driver_pod()])["other drivers for claims"]
    assert (finding.state, finding.found) == (State.FAILED, "nvidia/plugin on n")
    for pod in (driver_pod("compute-domains"), driver_pod(image="nginx"), driver_pod(node="elsewhere")):
        assert found([], [pod])["other drivers for claims"].state is State.OK


def test_nodes_that_offer_nothing_while_others_do_are_named() -> None:
    assert found([slice_(devices=2)])["claims"].found == "2 devices are offered to claims"
    finding = found([slice_()], served=("n", "m"))["claims"]
    assert (finding.state, finding.found) == (State.WARNING, "nodes that offer nothing to claims: m")
    assert "dra.enabled" in finding.fix


async def test_the_doctor_reads_the_slices_where_there_are_any() -> None:
    patient = Patient()
    await patient.kube.create(RESOURCE_SLICES, slice_(own=False))
    assert (await patient.findings())["other drivers for claims"].state is State.FAILED
    before_134 = Patient()
    before_134.kube.failing["list"] = lambda resource, name: (
        NotFound("no such kind") if resource == RESOURCE_SLICES else None
    )
    assert (await before_134.findings())["other drivers for claims"].state is State.OK


def of_classes(classes: list[Object], slices: list[Object]) -> list[tuple[State, str]]:
    return [(each.state, each.found.split(",")[0]) for each in device_classes_of_claims(classes, slices)]


def test_classes_are_those_that_lamina_makes() -> None:
    made = device_classes(DRIVER)
    assert of_classes(made, [slice_()]) == of_classes([], []) == of_classes([], [slice_(own=False)]) == []
    assert len(of_classes([], [slice_(), slice_("m")])) == 3
    assert of_classes(made[:2], [slice_()]) == [(State.FAILED, f"there is no DeviceClass {HAMI_DRIVER}")]
    chosen = device_classes("gpu.example.com")
    assert of_classes(chosen, [slice_(driver="gpu.example.com")]) == []


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_class_of_another_system_is_found(at: int) -> None:
    classes = device_classes(DRIVER)
    theirs = {"selectors": [{"cel": {"expression": f'device.driver == "{HAMI_DRIVER}"'}}]}
    classes[at] = {"metadata": classes[at]["metadata"], "spec": theirs}
    (finding,) = device_classes_of_claims(classes, [slice_()])
    name = classes[at]["metadata"]["name"]
    assert finding.found.startswith(f"the DeviceClass {name} is not the one that Lamina makes")
    assert f"kubectl delete deviceclass {name}" in finding.fix
