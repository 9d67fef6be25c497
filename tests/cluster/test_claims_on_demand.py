"""MIG devices on demand, binding conditions and generated claims, with a real kube-scheduler and kube-apiserver."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster import observation
from tests.cluster.claims import (
    GIB,
    allocate,
    amounts,
    apply,
    claim,
    delete_claims,
    devices,
    exactly,
    names,
    seen,
    serving,
    share,
    user,
)
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.node import RealNode
from tests.cluster.components.processes import Processes
from tests.cluster.queries import delete_pods, pod, running, why_pending
from tests.waiting import wait_until

OUT_OF_MEMORY = "2"
CONFIG = {
    "apiVersion": "lamina.dev/v1alpha1",
    "kind": "Configuration",
    "sharing": {"modes": ["quota", "mig"]},
    "admission": {"byClaim": "asked"},
}
HOLD = """
import ctypes, time
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
print("holds", flush=True)
time.sleep(3600)
"""


@pytest.fixture(scope="module")
def lamina(cluster: RealCluster) -> Iterator[Processes]:
    with serving(cluster, CONFIG, binding=True) as processes:
        wait_until(lambda: len(devices(cluster)) == 4 * 26, lambda: str(devices(cluster)))
        yield processes


@pytest.fixture(autouse=True)
def _without_claims(cluster: RealCluster, lamina: Processes) -> Iterator[None]:
    yield
    delete_pods(cluster)
    delete_claims(cluster)
    wait_until(lambda: not any(instances(cluster, each) for each in cluster.nodes), lambda: "MIG devices stay")


def instances(cluster: RealCluster, node: RealNode) -> list[str]:
    """The UUIDs of the MIG devices on the node."""
    return [*observation.look(cluster).nodes[node.name].instances]


def partition(name: str, profile: str, number: int = 0, node: str = "") -> tuple[object, object]:
    """A claim of a MIG device, and a pod with it."""
    selects = {"cel": {"expression": f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"}}
    return claim(name, exactly("mig.nvidia.com", selectors=[selects])), user(name, name, node=node)


def conditions(cluster: RealCluster, name: str) -> set[str]:
    """Of all devices of the claim."""
    status = json.loads(cluster.kubectl("get", "resourceclaim", name, "-o", "json"))["status"]
    return {each["type"] for device in status.get("devices") or () for each in device["conditions"]}


def test_another_node_is_tried_where_gpus_refuse_mig(cluster: RealCluster) -> None:
    """Programs of an administrator keep both GPUs of the first node; the second node can be used later.

    It comes first: without MIG devices, a program can use a GPU only as long as its MIG mode has not been enabled.
    """
    other = cluster.nodes[1].name
    admin = "resource.kubernetes.io/admin-access"
    cluster.kubectl("label", "namespace", "default", f"{admin}=true")
    cluster.kubectl("cordon", other)
    try:
        holders = [f"admin-{index}" for index in range(2)]
        for index, name in enumerate(holders):
            selects = {"cel": {"expression": f"device.attributes['gpu.nvidia.com'].index == {index}"}}
            access = exactly(adminAccess=True, selectors=[selects], **amounts(memory="1Mi"))
            apply(cluster, claim(name, access), user(name, name, "python3", "-c", HOLD))
        running(cluster, *holders)
        for name in holders:
            wait_until(lambda name=name: "holds" in cluster.kubectl("logs", name), "the program has no context")
        apply(cluster, *partition("mig", "1g.5gb"))

        def says() -> str:
            return cluster.kubectl("describe", "pod", "mig")

        wait_until(lambda: "binding" in says() or "cannot change the MIG mode" in says(), says)
        cluster.kubectl("uncordon", other)
        running(cluster, "mig")
        assert cluster.kubectl("get", "pod", "mig", "-o", "jsonpath={.spec.nodeName}") == other
    finally:
        cluster.kubectl("uncordon", other)
        cluster.kubectl("label", "namespace", "default", f"{admin}-")


def test_a_device_is_made_before_its_pod_is_bound_and_goes_with_it(cluster: RealCluster, node: RealNode) -> None:
    apply(cluster, *partition("small", "1g.5gb", node=node.name), *partition("large", "3g.20gb", node=node.name))
    running(cluster, "small", "large")
    assert conditions(cluster, "small") == conditions(cluster, "large") == {"lamina.dev/Prepared"}
    assert len(instances(cluster, node)) == 2 and {*seen(cluster, "small")} != {*seen(cluster, "large")}
    assert allocate(cluster, "small", 4 * GIB, GIB) == ["0", OUT_OF_MEMORY]


def test_the_scheduler_keeps_mig_devices_shares_and_whole_gpus_apart(cluster: RealCluster, node: RealNode) -> None:
    for number in range(2):
        apply(cluster, *partition(f"mig-{number}", "7g.40gb", node=node.name))
    running(cluster, "mig-0", "mig-1")
    share(cluster, "share", node=node.name, memory="4Gi")
    apply(cluster, *partition("third", "1g.5gb", node=node.name))
    for name in ("share", "third"):
        wait_until(lambda name=name: "cannot allocate all claims" in why_pending(cluster, name))
    cluster.kubectl("delete", "pod", "mig-0")
    cluster.kubectl("delete", "resourceclaim", "mig-0")
    running(cluster, "share")
    assert allocate(cluster, "share", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
    assert "cannot allocate all claims" in why_pending(cluster, "third")


def test_seven_small_devices_fit_one_gpu(cluster: RealCluster, node: RealNode) -> None:
    profile = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"}}
    same = {"matchAttribute": "gpu.nvidia.com/parentUUID"}
    wanted = claim("seven", *[exactly("mig.nvidia.com", selectors=[profile])] * 7, constraints=[same])
    apply(cluster, wanted, user("seven", "seven", node=node.name))
    running(cluster, "seven")
    assert len({*seen(cluster, "seven")}) == len(instances(cluster, node)) == 7


def test_a_pod_of_hami_is_served_by_a_generated_claim(cluster: RealCluster, node: RealNode) -> None:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4096, "nvidia.com/gpucores": 30}
    manifest = json.loads(pod("hami", limits=limits, node=node.name))
    manifest["metadata"]["annotations"] = {"lamina.dev/by-claim": "true"}
    apply(cluster, manifest)
    running(cluster, "hami")
    assert allocate(cluster, "hami", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
    assert cluster.kubectl("get", "grants", "-o", "name") == ""
    assert len(names(cluster)) == 1
