"""resource.k8s.io: what the API accepts, fills in and refuses."""

import copy
from typing import Any

import pytest

from lamina.ports.kube import Object
from lamina_lab.kubernetes.errors import ApiError
from tests.lab_api.apis import Bench
from tests.lab_scheduler.device_objects import claim, counter_set, device_class, gpu, request, slices, uses

CLAIMS, SLICES = "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"
RULES = "devicetaintrules.resource.k8s.io"


def _sub(name: str = "s", cls: str = "gpu.nvidia.com", **more: Any) -> Object:
    return {"name": name, "deviceClassName": cls, **more}


def _slice(**changes: Any) -> Object:
    [made] = slices(gpu("gpu-0", shareable=True))
    made["spec"].update(changes)
    return {"metadata": made["metadata"], "spec": {key: value for key, value in made["spec"].items() if value}}


def _device(**changes: Any) -> Object:
    return _slice(devices=[{**gpu("gpu-0", shareable=True), **changes}])


def _memory(**policy: Any) -> Object:
    return _device(capacity={"memory": {"value": "8Gi", "requestPolicy": policy}})


async def test_defaults_of_requests(bench: Bench) -> None:
    tolerations = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    wanted = claim("a", request(tolerations=tolerations), {"name": "b", "firstAvailable": [_sub(allocationMode="All")]})
    del wanted["metadata"]["uid"]
    made = await bench.create(CLAIMS, wanted)
    first, second = made["spec"]["devices"]["requests"]
    assert (first["exactly"]["allocationMode"], first["exactly"]["count"]) == ("ExactCount", 1)
    assert first["exactly"]["tolerations"][0]["operator"] == "Equal"
    assert "count" not in second["firstAvailable"][0]


@pytest.mark.parametrize(
    ("devices", "wanted"),
    [
        ([{"name": "x"}], "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable`"),
        ([{**request(), "firstAvailable": [_sub()]}], "exactly one of `exactly` or `firstAvailable`"),
        ([request("x"), request("x")], 'spec.devices.requests[1].name: Duplicate value: "x"'),
        ([request("X")], "a lowercase RFC 1123 label"),
        ([request("x", "")], "spec.devices.requests[0].exactly.deviceClassName: Required value"),
        ([request(count=-1)], "must be greater than zero"),
        ([request(allocationMode="All", count=2)], "must not be specified when allocationMode is 'All'"),
        ([request(allocationMode="Some")], 'Unsupported value: "Some"'),
        ([request("x", "c", "device.driver ==")], "selectors[0].cel.expression: Invalid value"),
        ([request(f"x{at}") for at in range(33)], "Too many: 33: must have at most 32 items"),
        ([{"name": "x", "firstAvailable": [_sub(f"s{at}") for at in range(9)]}], "must have at most 8 items"),
        ([{"name": "x", "firstAvailable": [_sub(), _sub()]}], 'firstAvailable[1].name: Duplicate value: "s"'),
    ],
)
async def test_claims_that_are_refused(bench: Bench, devices: list[Object], wanted: str) -> None:
    made = claim("a", *devices)
    del made["metadata"]["uid"]
    for storage, body in (
        (CLAIMS, made),
        ("resourceclaimtemplates.resource.k8s.io", {"metadata": {"name": "t"}, "spec": {"spec": made["spec"]}}),
    ):
        with pytest.raises(ApiError) as refusal:
            await bench.create(storage, copy.deepcopy(body))
        assert refusal.value.code == 422
        assert wanted in refusal.value.message


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"config": [{"requests": ["b"]}]}, "spec.devices.config[0].requests: Invalid value"),
        ({"constraints": [{"requests": ["b"], "matchAttribute": "a/b"}]}, "constraints[0].requests: Invalid value"),
        ({"constraints": [{"requests": []}]}, "exactly one attribute must be specified"),
        ({"constraints": [{"matchAttribute": "a/b", "distinctAttribute": "a/b"}]}, "exactly one attribute"),
    ],
)
async def test_constraints_and_configuration_that_are_refused(bench: Bench, more: Object, wanted: str) -> None:
    made = claim("a", request(), **more)
    del made["metadata"]["uid"]
    with pytest.raises(ApiError, match="is invalid") as refusal:
        await bench.create(CLAIMS, made)
    assert wanted in refusal.value.message


async def test_a_claim_cannot_be_changed_but_its_status_can(bench: Bench) -> None:
    made = claim("a", request())
    del made["metadata"]["uid"]
    stored = await bench.create(CLAIMS, made)
    changed = copy.deepcopy(stored)
    changed["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    with pytest.raises(ApiError, match=r"spec\.devices: Invalid value: .*: field is immutable"):
        await bench.update(CLAIMS, changed)
    allocated = {**stored, "status": {"allocation": {"devices": {"results": []}}}}
    after = await bench.update(CLAIMS, allocated, "status")
    assert after["status"]["allocation"] == {"devices": {"results": []}}


async def test_the_slices_of_a_gpu_node_are_accepted(bench: Bench) -> None:
    for made in slices(gpu("gpu-0", shareable=True, counters=True), sets=[counter_set("gpu-0")]):
        await bench.create(SLICES, made)
    await bench.create("deviceclasses.resource.k8s.io", device_class("gpu.nvidia.com", "gpu"))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (_slice(driver=""), "spec.driver: Required value"),
        (_slice(pool={"name": "n", "generation": 1}), "spec.pool.resourceSliceCount: Invalid value: 0: must be > 0"),
        (_slice(nodeName=""), "exactly one of `allNodes`, `nodeName`, `nodeSelector`, `perDeviceNodeSelection`"),
        (_slice(allNodes=True), "exactly one of"),
        (_slice(sharedCounters=[counter_set("gpu-0")]), "only one of `sharedCounters` or `devices` is allowed"),
        (_slice(devices=[gpu(f"gpu-{at}") for at in range(129)]), "must have at most 128 items"),
        (_slice(devices=[gpu(f"gpu-{at}", counters=True) for at in range(65)]), "must have at most 64 items"),
        (_slice(devices=[gpu("gpu-0"), gpu("gpu-0")]), 'spec.devices[1].name: Duplicate value: "gpu-0"'),
        (_device(attributes={f"a{at}": {"int": at} for at in range(33)}), "must have at most 32 items"),
        (_device(attributes={"a": {"int": 1, "bool": True}}), "exactly one value must be specified"),
        (_device(attributes={"a": {"string": "x" * 65}}), "may not be more than 64 bytes"),
        (_device(taints=[{"key": "k", "effect": "Never"}]), 'Unsupported value: "Never"'),
        (_device(taints=[{"effect": "None"}]), "spec.devices[0].taints[0].key: Required value"),
        (_device(consumesCounters=[uses("a"), uses("b"), uses("c")]), "must have at most 2 items"),
        (_device(bindingConditions=list("abcde")), "must have at most 4 items"),
        (_memory(validRange={"min": "1Mi", "step": "1Mi"}), "requestPolicy.default: Required value"),
        (_memory(default="1Gi", validRange={"min": "1Mi", "max": "9Gi"}), "validRange.max: Invalid value"),
        (_memory(default="1025Ki", validRange={"min": "1Mi", "step": "1Mi"}), "is not a multiple of step"),
        (_memory(default="1Ki", validRange={"min": "1Mi", "step": "1Mi"}), "is less than min"),
        (_memory(default="3Gi", validValues=["1Gi", "2Gi"]), "not a valid value"),
        (_device(allowMultipleAllocations=False), "allowMultipleAllocations must be true"),
    ],
)
async def test_slices_that_are_refused(bench: Bench, body: Object, wanted: str) -> None:
    with pytest.raises(ApiError, match="is invalid") as refusal:
        await bench.create(SLICES, body)
    assert wanted in refusal.value.message


async def test_a_taint_rule_needs_a_key_and_an_effect(bench: Bench) -> None:
    await bench.create(RULES, {"metadata": {"name": "r"}, "spec": {"taint": {"key": "k", "effect": "NoExecute"}}})
    for taint, wanted in (
        ({"effect": "None"}, "spec.taint.key: Required value"),
        ({"key": "k", "effect": "Never"}, 'spec.taint.effect: Unsupported value: "Never"'),
        ({}, "spec.taint.key: Required value"),
    ):
        with pytest.raises(ApiError, match="is invalid") as refusal:
            await bench.create(RULES, {"metadata": {"name": "x"}, "spec": {"taint": taint}})
        assert wanted in refusal.value.message
