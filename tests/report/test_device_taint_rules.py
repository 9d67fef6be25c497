"""Which DeviceTaintRules keep claims from devices of Lamina, in sentences."""

from typing import Any

import pytest

from lamina.dra.names import DRIVER
from lamina.dra.slices import DIGEST
from lamina.operations.doctor.claims import tainted_devices
from lamina.ports.kube import DEVICE_TAINT_RULES, RESOURCE_SLICES, NotFound, Object, Refused
from lamina.ports.kube.fake import FakeKube
from lamina.report.device_taint_rules import taint_lines, tainting

TAINT = {"key": "example.com/repair", "effect": "NoExecute"}
WAITS: Object = {"metadata": {"name": "p"}, "spec": {"resourceClaims": [{"name": "gpu"}]}}


def rule(selector: Any, name: str = "repair", **taint: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": TAINT | taint}}


def slice_(node: str, *, own: bool = True, devices: int = 2) -> Object:
    listed = [{"name": f"gpu-{at}"} for at in range(devices)]
    spec = {"driver": DRIVER, "nodeName": node, "pool": {"name": node, "generation": 1}, "devices": listed}
    return {"metadata": {"name": node, "annotations": {DIGEST: "x"} if own else {}}, "spec": spec}


def sentences(*rules: Object, nodes: int = 1) -> list[str]:
    return [each.sentence for each in tainting(rules, [slice_(f"n{number}") for number in range(nodes)])]


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        ({}, "2 devices of n0"),
        ({"driver": DRIVER}, "2 devices of n0"),
        ({"pool": "n0", "device": "gpu-1"}, "1 device of n0"),
        ({"device": "gpu-2"}, ""),
        ({"pool": "n1"}, ""),
        ({"driver": "other.example.com"}, ""),
        (None, ""),
    ],
)
def test_a_rule_is_about_the_devices_that_all_its_criteria_name(selector: Any, tainted: str) -> None:
    expected = [f"DeviceTaintRule repair taints {tainted} with example.com/repair:NoExecute"] if tainted else []
    assert sentences(rule(selector)) == expected


def test_the_taint_is_written_with_its_value() -> None:
    assert sentences(rule({}, value="fan", effect="NoSchedule"))[0].endswith("with example.com/repair=fan:NoSchedule")


def test_a_rule_without_an_effect_keeps_nothing_away() -> None:
    assert sentences(rule({}, effect="None")) == []


def test_many_nodes_are_counted() -> None:
    assert "14 devices of n0, n1, n2, n3, n4 and 2 more with" in sentences(rule({}), nodes=7)[0]


def test_devices_of_other_drivers_are_not_of_interest() -> None:
    assert not list(tainting([rule({})], [slice_("n", own=False)]))


def test_the_doctor_names_each_rule_and_how_it_ends() -> None:
    found = list(tainted_devices([rule({}, "b"), rule({}, "a")], [slice_("n")]))
    assert [each.found.split()[1] for each in found] == ["a", "b"]
    assert found[0].fix.endswith("kubectl delete devicetaintrules a")
    assert not list(tainted_devices([], [slice_("n")]))


async def made(rules: int) -> FakeKube:
    kube = FakeKube()
    await kube.create(RESOURCE_SLICES, slice_("n"))
    for number in range(rules):
        await kube.create(DEVICE_TAINT_RULES, rule({}, f"rule-{number}"))
    return kube


async def test_why_names_the_first_rules_where_a_pod_with_claims_waits() -> None:
    assert await taint_lines(await made(0), [WAITS]) == []
    assert len(await taint_lines(await made(5), [WAITS])) == 5
    for rules, last in ((6, "  1 more rule taints devices"), (7, "  2 more rules taint devices")):
        lines = await taint_lines(await made(rules), [WAITS])
        assert len(lines) == 6 and lines[-1] == last


async def test_why_reads_no_rules_for_other_pods() -> None:
    kube = await made(1)
    kube.failing["list"] = lambda resource, name: Refused("nothing is to be read")
    assert await taint_lines(kube, [{"spec": {}}, {"spec": {**WAITS["spec"], "nodeName": "n"}}]) == []


@pytest.mark.parametrize("error", [NotFound("no such kind"), Refused("forbidden")])
@pytest.mark.parametrize("kind", [DEVICE_TAINT_RULES, RESOURCE_SLICES])
async def test_what_cannot_be_read_is_left_out(error: NotFound | Refused, kind: Any) -> None:
    kube = await made(1)
    kube.failing["list"] = lambda resource, name: error if resource == kind else None
    assert await taint_lines(kube, [WAITS]) == []
