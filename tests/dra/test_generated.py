"""The request of a pod as a claim: what is in its template, which the API server takes, and what no claim can say."""

from typing import Any

import pytest
from msgspec import structs

from lamina.core.gpus import Mode
from lamina.core.grants import HIGH, LOW, ComputePolicy
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.dra.claims import read_claim
from lamina.dra.generated import GeneratedClaim, generated_claim, read_generated, template_spec
from lamina.dra.names import DRIVER
from lamina.dra.offers import DriverVersions, OfferedGpu, offered_devices
from lamina.dra.share_limits import ShareLimits, limits_by_request
from lamina.dra.slices import node_slices
from lamina.errors import BadInput
from lamina.ports.nvml.fake import fake_gpus
from lamina_lab.api.schema import device_validation
from tests.lab_scheduler.device_objects import CLASSES, AllocatedDevices

SHARE = ContainerRequest(container="main", count=1, memory_mib=4096, cores=30)


def pod(*containers: ContainerRequest, **more: Any) -> PodRequest:
    return PodRequest(dialect="hami", containers=containers or (SHARE,), **more)


def cluster() -> AllocatedDevices:
    facts = [*fake_gpus(2), *(structs.replace(each, index=2 + each.index, uuid=f"GPU-a{each.index}", name="NVIDIA A100")
             for each in fake_gpus(2))]  # fmt: skip
    devices = offered_devices([OfferedGpu(facts=each) for each in facts], DriverVersions())
    return AllocatedDevices(node_slices("node-0", DRIVER, [each.document for each in devices], []), CLASSES)


def allocated(request: PodRequest, on: AllocatedDevices | None = None) -> Any:
    """The devices that the scheduler gives to the pod's claim."""
    spec = template_spec(generated_claim(request))["spec"]
    claim = {"metadata": {"name": "c", "namespace": "default", "uid": "uid-c"}, "spec": spec}
    found = on or cluster()
    assert found.allocate(claim) is not None
    return read_claim(found.allocated[-1], DRIVER, "node-0").devices


def test_each_container_has_a_request_of_its_own() -> None:
    other = ContainerRequest(container="side", count=1, memory_mib=1024)
    found = {each.request: (each.memory_mib, each.cores) for each in allocated(pod(SHARE, other))}
    assert found == {"main": (4096, 30), "side": (1024, 0)}


def test_several_gpus_are_different_ones_and_whole_gpus_are_whole() -> None:
    devices = allocated(pod(structs.replace(SHARE, count=3)))
    assert len({each.device for each in devices}) == 3 and {each.memory_mib for each in devices} == {4096}
    whole = ContainerRequest(container="main", count=2, memory_percent=100, exclusive=True)
    assert {each.memory_mib for each in allocated(pod(whole))} == {32768}


@pytest.mark.parametrize(
    ("selector", "device"),
    [
        (GpuSelector(types=("a100",)), "gpu-3"),
        (GpuSelector(types=("P4", "A100")), "gpu-3"),
        (GpuSelector(not_types=("v100",)), "gpu-3"),
        (GpuSelector(uuids=("GPU-a1",)), "gpu-3"),
        (GpuSelector(types=("A100",), not_uuids=("GPU-a1",)), "gpu-2"),
    ],
)
def test_the_choice_of_gpus_is_kept(selector: GpuSelector, device: str) -> None:
    assert [each.device for each in allocated(pod(selector=selector))] == [device]


@pytest.mark.parametrize(
    ("policy", "cores", "most", "limits"),
    [
        (ComputePolicy.CAP, 30, 0, {}),
        (ComputePolicy.WEIGHT, 30, 0, {"cores": 100}),
        (ComputePolicy.WEIGHT, 30, 60, {"cores": 60}),
        (ComputePolicy.WEIGHT, 0, 0, {}),
        (ComputePolicy.WEIGHT, 100, 0, {}),
    ],
)
def test_policies_of_compute_become_limits(policy: ComputePolicy, cores: int, most: int, limits: Any) -> None:
    request = pod(structs.replace(SHARE, cores=cores, most_cores=most), compute_policy=policy)
    devices = template_spec(generated_claim(request))["spec"]["devices"]
    config = devices.get("config", ())
    assert [each["opaque"]["parameters"]["limits"] for each in config] == ([limits] if limits else [])
    assert limits_by_request(config, DRIVER, ["main"]).keys() == ({"main"} if limits else set())


def test_memory_that_may_be_borrowed_is_a_limit() -> None:
    (config,) = template_spec(generated_claim(pod(structs.replace(SHARE, cores=0, most_memory_mib=8192))))["spec"][
        "devices"
    ]["config"]
    assert config["opaque"]["parameters"]["limits"] == {"memory": "8192Mi"}


@pytest.mark.parametrize(("priority", "first"), [(HIGH, True), (LOW, False), (None, False)])
def test_requests_that_come_first_do_so_by_a_claim_too(priority: int | None, first: bool) -> None:
    """A low priority is what others have."""
    other = ContainerRequest(container="side", count=1, memory_mib=1024)
    share = structs.replace(SHARE, cores=0, priority=priority)
    devices = template_spec(generated_claim(pod(share, other)))["spec"]["devices"]
    found = limits_by_request(devices.get("config", ()), DRIVER, ["main", "side"])
    assert found == ({"main": ShareLimits(first=True)} if first else {})


def test_a_whole_gpu_has_no_requests_to_come_before() -> None:
    whole = ContainerRequest(container="main", count=1, memory_percent=100, exclusive=True, priority=HIGH)
    assert "config" not in template_spec(generated_claim(pod(whole)))["spec"]["devices"]


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (pod(ContainerRequest(container="main", count=1, memory_percent=30)), "a percentage of memory"),
        (pod(structs.replace(SHARE, init=True)), "the share of an init container"),
        (pod(structs.replace(SHARE, exclusive=True)), "a GPU of its own with less than all of its memory"),
        (pod(numa_bind=True), "NUMA binding"),
        (pod(selector=GpuSelector(modes=(Mode.MIG,))), "a mode of sharing"),
        (pod(selector=GpuSelector(idle=True)), "that the GPU must be idle"),
        (pod(compute_policy=ComputePolicy.THREADS), "a part of the processors by MPS"),
        (pod(only_native_reason="because"), "devices that only nodes with NVIDIA's names offer"),
        (pod(structs.replace(SHARE, count=17)), "<= 16"),
        (pod(selector=GpuSelector(types=("a'] || true || ['",))), "Expected `str` matching regex"),
        (pod(structs.replace(SHARE, container="")), "Expected `str` matching regex"),
    ],
)
def test_what_no_claim_can_express_is_refused(request_: PodRequest, reason: str) -> None:
    with pytest.raises(BadInput) as refused:
        generated_claim(request_)
    assert reason in str(refused.value) and str(refused.value).startswith("a ResourceClaim cannot express")


def test_equal_requests_have_one_name_and_others_another() -> None:
    one = generated_claim(pod(selector=GpuSelector(types=("B", "a"))))
    assert one.name == generated_claim(pod(selector=GpuSelector(types=("A", "b")))).name
    others = {generated_claim(pod(structs.replace(SHARE, memory_mib=memory))).name for memory in range(1, 50)}
    assert len({*others, one.name}) == 50 and len(one.name) == 31


def test_the_annotation_is_read_back_strictly() -> None:
    claim = generated_claim(pod())
    assert read_generated(claim.text, claim.name) == claim
    for text, reason in (
        ("", "not one that Lamina wrote"),
        ("[]", "not one that Lamina wrote"),
        ('{"requests": []}', "not one that Lamina wrote"),
        ('{"requests": [{"container": "main"}], "odd": 1}', "not one that Lamina wrote"),
        ('{"requests": [{"container": "main", "cores": 101}]}', "not one that Lamina wrote"),
        ('{"requests": [{"container": "main"}], "uuids": ["\'"]}', "not one that Lamina wrote"),
        (generated_claim(pod(structs.replace(SHARE, cores=31))).text, "belongs to the template"),
    ):
        with pytest.raises(BadInput, match=reason):
            read_generated(text, claim.name)


@pytest.mark.parametrize(
    "containers", [(SHARE,), (structs.replace(SHARE, count=2), structs.replace(SHARE, container="b"))]
)
def test_the_api_server_takes_the_template(containers: tuple[ContainerRequest, ...]) -> None:
    claim: GeneratedClaim = generated_claim(pod(*containers, selector=GpuSelector(types=("a100",), uuids=("GPU-1",))))
    template = {"metadata": {"name": claim.name, "namespace": "default"}, "spec": template_spec(claim)}
    assert device_validation.template(template) == []
