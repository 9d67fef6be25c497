"""Resource claims on a node: drivers register, prepare claims before containers start, and free them afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from lamina.ports.kube import PODS, RESOURCE_CLAIMS
from lamina.ports.kubelet import drahealth_pb2
from lamina.ports.kubelet import podresources_pb2 as messages
from lamina.ports.kubelet.podresources_pb2_grpc import PodResourcesListerStub
from lamina_lab.kubelet.claims.records import ClaimUse, PreparedDevice, all_claims, uses
from tests.lab_kubelet.cluster import NODE, Object, OneKubelet, container, is_running, phase
from tests.lab_kubelet.fake_driver import DRIVER, FakeDriver
from tests.waiting import wait_until

SLEEP = 'env | sort | grep ^DEVICE; trap "exit 0" TERM; sleep 1000 & wait'


@pytest.fixture
def cluster() -> Iterator[OneKubelet]:
    made = OneKubelet()
    made.start_kubelet()
    yield made
    made.close()


@pytest.fixture
def driver(cluster: OneKubelet) -> Iterator[FakeDriver]:
    made = FakeDriver(cluster.root / "k", cluster.root / "cdi")
    cluster.run(made.start())
    yield made
    cluster.run(made.stop())


def claim(cluster: OneKubelet, name: str = "c") -> str:
    """An allocated claim without a pod. Returns its UID."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": {"requests": requests}}}
    made = cluster.run(cluster.kube.create(RESOURCE_CLAIMS, body, namespace="default"))
    result = {"request": "gpu", "driver": DRIVER, "pool": NODE, "device": "gpu-0", "shareID": "share-1"}
    status(cluster, name, {"allocation": {"devices": {"results": [result]}}})
    return str(made["metadata"]["uid"])


def status(cluster: OneKubelet, name: str, change: Object) -> None:
    cluster.run(
        cluster.kube.patch(RESOURCE_CLAIMS, name, {"status": change}, namespace="default", subresource="status")
    )


def reserve(cluster: OneKubelet, name: str, *pods: str) -> None:
    users = [{"resource": "pods", "name": pod, "uid": cluster.pod(pod)["metadata"]["uid"]} for pod in pods]
    status(cluster, name, {"reservedFor": users})


def pod(cluster: OneKubelet, script: str = SLEEP, name: str = "c", request: str = "", **more: Any) -> str:
    use = {"name": "device", **({"request": request} if request else {})}
    main = container(script, resources={"claims": [use]})
    entries = [{"name": "device", "resourceClaimName": name}]
    return cluster.create(main, resourceClaims=entries, restartPolicy="Never", **more)


def until_refused(cluster: OneKubelet, name: str, why: str) -> None:
    message = f"Failed to prepare dynamic resources: {why}"

    def refused() -> bool:
        found = {(event["reason"], event["message"]) for event in cluster.events(name)}
        return ("FailedPrepareDynamicResources", message) in found

    wait_until(refused, lambda: f"{message}; {cluster.events(name)}")


def test_a_container_gets_the_devices_of_its_claim(cluster: OneKubelet, driver: FakeDriver) -> None:
    uid = claim(cluster)
    made = pod(cluster)
    reserve(cluster, "c", made)
    cluster.until(made, is_running, "the pod runs")
    wait_until(lambda: cluster.log(made) == f"DEVICE_gpu=gpu-of-{uid}\n", lambda: cluster.log(made))
    assert driver.registered == [(True, "")]
    assert driver.prepared == [uid]
    assert driver.unprepared == []
    cluster.delete(made)
    cluster.until_gone(made)
    assert driver.unprepared == [uid]


def test_a_container_without_the_claim_gets_nothing(cluster: OneKubelet, driver: FakeDriver) -> None:
    claim(cluster)
    entries = [{"name": "device", "resourceClaimName": "c"}]
    made = cluster.create(container("env | grep ^DEVICE; echo none"), resourceClaims=entries, restartPolicy="Never")
    reserve(cluster, "c", made)
    cluster.until(made, lambda found: phase(found) == "Succeeded", "the pod has ended")
    assert cluster.log(made) == "none\n"


def test_a_container_names_one_request_of_its_claim(cluster: OneKubelet, driver: FakeDriver) -> None:
    driver.requests = ["gpu", "nic"]
    uid = claim(cluster)
    made = pod(cluster, request="nic")
    reserve(cluster, "c", made)
    cluster.until(made, is_running, "the pod runs")
    assert cluster.log(made) == f"DEVICE_nic=nic-of-{uid}\n"


def test_two_pods_share_a_claim_which_is_freed_with_the_last(cluster: OneKubelet, driver: FakeDriver) -> None:
    uid = claim(cluster)
    pods = [pod(cluster), pod(cluster)]
    reserve(cluster, "c", *pods)
    for made in pods:
        cluster.until(made, is_running, "the pod runs")
    assert driver.prepared == [uid]
    for made, freed in zip(pods, ([], [uid]), strict=True):
        cluster.delete(made)
        cluster.until_gone(made)
        assert driver.unprepared == freed


def test_a_pod_waits_while_its_driver_refuses_and_starts_once_it_does_not(
    cluster: OneKubelet, driver: FakeDriver
) -> None:
    driver.refuse = "the GPU is in use"
    claim(cluster)
    made = pod(cluster)
    reserve(cluster, "c", made)
    until_refused(cluster, made, f"DRA driver {DRIVER}: claim default/c: the GPU is in use")
    assert phase(cluster.pod(made)) == "Pending"
    driver.refuse = ""
    cluster.until(made, is_running, "the pod runs")


def test_a_pod_waits_for_a_driver_that_is_not_there_yet(cluster: OneKubelet) -> None:
    claim(cluster)
    made = pod(cluster)
    reserve(cluster, "c", made)
    until_refused(cluster, made, f"DRA driver {DRIVER} is not registered")
    late = FakeDriver(cluster.root / "k", cluster.root / "cdi", versions=("v1beta1.DRAPlugin",))
    cluster.run(late.start())
    cluster.until(made, is_running, "the pod runs")
    cluster.run(late.stop())


def test_a_pod_that_a_claim_is_not_reserved_for_does_not_get_it(cluster: OneKubelet, driver: FakeDriver) -> None:
    claim(cluster)
    made = pod(cluster)
    until_refused(cluster, made, "pod is not allowed to use resourceclaim default/c")
    assert driver.prepared == []


@pytest.mark.parametrize(
    ("kind", "versions", "refusal"),
    [
        ("CSIPlugin", ("v1.DRAPlugin",), "this kubelet knows plugins of type DRAPlugin, not CSIPlugin"),
        ("DRAPlugin", ("v2.DRAPlugin",), "none of its versions is supported"),
    ],
)
def test_plugins_that_are_refused(cluster: OneKubelet, kind: str, versions: tuple[str, ...], refusal: str) -> None:
    strange = FakeDriver(cluster.root / "k", cluster.root / "cdi", versions=versions)
    strange.kind = kind
    cluster.run(strange.start())
    wait_until(lambda: strange.registered, "the outcome of the registration")
    assert strange.registered[0][0] is False
    assert refusal in strange.registered[0][1]
    cluster.run(strange.stop())


def test_claims_survive_a_restart_of_the_kubelet(cluster: OneKubelet, driver: FakeDriver) -> None:
    uid = claim(cluster)
    made = pod(cluster)
    reserve(cluster, "c", made)
    cluster.until(made, is_running, "the pod runs")
    cluster.end_kubelet()
    cluster.run(cluster.kube.delete(PODS, made, namespace="default", grace_s=0))
    assert driver.unprepared == []
    cluster.start_kubelet()
    wait_until(lambda: driver.unprepared == [uid], "the claim of the pod that is gone is freed")


def test_pod_resources_list_claims(cluster: OneKubelet, driver: FakeDriver) -> None:
    uid = claim(cluster)
    made = pod(cluster)
    reserve(cluster, "c", made)
    cluster.until(made, is_running, "the pod runs")

    async def listed() -> messages.ListPodResourcesResponse:
        async with grpc.aio.insecure_channel(f"unix:{cluster.root / 'k/pod-resources/kubelet.sock'}") as channel:
            stub: Any = PodResourcesListerStub(channel)
            answer: messages.ListPodResourcesResponse = await stub.List(messages.ListPodResourcesRequest())
            return answer

    [found] = cluster.run(listed()).pod_resources
    [dynamic] = found.containers[0].dynamic_resources
    [resource] = dynamic.claim_resources
    assert (dynamic.claim_name, dynamic.claim_namespace) == ("c", "default")
    assert (resource.driver_name, resource.pool_name, resource.device_name) == (DRIVER, NODE, "gpu-0")
    assert resource.share_id == "share-1"
    assert [device.name for device in resource.cdi_devices] == [f"k8s.gpu.example.com/claim={uid}-gpu"]


def test_which_claims_a_container_uses() -> None:
    main = {"name": "main", "resources": {"claims": [{"name": "a"}, {"name": "b", "request": "x"}]}}
    spec = {
        "containers": [main],
        "resourceClaims": [{"name": "a", "resourceClaimName": "one"}, {"name": "b", "resourceClaimTemplateName": "t"}],
    }
    mappings = [{"containerName": name, "requestName": f"container-{at}"} for at, name in enumerate(("main", "other"))]
    extended = {"resourceClaimName": "more", "requestMappings": mappings}
    generated = [{"name": "b", "resourceClaimName": "two"}]
    found = {"spec": spec, "status": {"resourceClaimStatuses": generated, "extendedResourceClaimStatus": extended}}
    assert list(uses(found, main)) == [ClaimUse("one", ""), ClaimUse("two", "x"), ClaimUse("more", "container-0")]
    assert all_claims(found) == ["one", "two", "more"]


@pytest.mark.parametrize(
    ("requests", "asked", "served"),
    [((), "x", True), (("x",), "x", True), (("x", "y"), "", True), (("y",), "x", False), (("x/sub",), "x", True)],
)
def test_which_devices_serve_a_request(requests: tuple[str, ...], asked: str, served: bool) -> None:
    assert PreparedDevice("d", "p", "x", requests, ()).serves(asked) is served


def test_a_pod_shows_the_health_of_its_devices(cluster: OneKubelet) -> None:
    driver = FakeDriver(cluster.root / "k", cluster.root / "cdi")
    driver.reports_health = True
    cluster.run(driver.start())
    claim(cluster)
    made = pod(cluster, request="gpu")
    reserve(cluster, "c", made)
    cluster.until(made, is_running, "the pod runs")

    def shown() -> list[Object]:
        [container_status] = cluster.pod(made)["status"]["containerStatuses"]
        return list(container_status.get("allocatedResourcesStatus") or ())

    def shows(health: str, **message: str) -> None:
        [entry] = wait_until(shown, "nothing is shown")
        [identity] = [each["resourceID"] for each in entry["resources"]]
        assert entry["name"] == "claim:device/gpu" and identity.endswith("-gpu")
        wanted = [{"resourceID": identity, "health": health, **message}]
        wait_until(lambda: shown()[0]["resources"] == wanted, lambda: str(shown()))

    shows("Unknown")
    cluster.run(driver.report("gpu-0", drahealth_pb2.HEALTHY))
    shows("Healthy")
    cluster.run(driver.report("gpu-0", drahealth_pb2.UNHEALTHY, "it is hot"))
    shows("Unhealthy", message="it is hot")
    cluster.run(driver.report("gpu-1", drahealth_pb2.HEALTHY))
    shows("Unknown")
    cluster.run(driver.report("gpu-0", drahealth_pb2.HEALTHY))
    shows("Healthy")
    cluster.run(driver.stop())
    shows("Unknown")
