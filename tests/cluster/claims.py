"""ResourceClaims on a cluster: whether its server has what they need, manifests, and queries."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.processes import Processes
from tests.cluster.queries import TWO_A100, Object, configured, other_gpus, pod
from tests.waiting import wait_until

API = "resource.k8s.io/v1"
CLASS = "gpu.nvidia.com"
GIB = 1 << 30
ALLOCATE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
for size in {sizes}:
    print(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)), flush=True)
"""


def missing(cluster: RealCluster) -> str:
    """Why claims cannot share GPUs on this server, as one sentence; empty where they can."""
    major, minor = cluster.binaries.version
    device = {"name": "gpu-0", "allowMultipleAllocations": True}
    pool = {"name": "asked", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "asked.example.com", "nodeName": "asked", "pool": pool, "devices": [device]}
    slice_ = {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": "asked"}, "spec": spec}
    try:
        words = ("create", "--dry-run=server", "--validate=false", "-o", "json", "-f", "-")
        answer = json.loads(cluster.kubectl(*words, stdin=json.dumps(slice_)))
    except Unavailable:
        return f"Kubernetes {major}.{minor} has no {API}, so it has no ResourceClaims for these tests"
    if not answer["spec"]["devices"][0].get("allowMultipleAllocations"):
        return f"Kubernetes {major}.{minor} has no consumable capacity, so claims cannot share GPUs"
    return ""


@contextmanager
def serving(cluster: RealCluster, config: Object | None = None, *, binding: bool = False) -> Iterator[Processes]:
    """Two nodes with two A100 each, whose agents serve claims. Skips where claims cannot share GPUs."""
    if reason := missing(cluster):
        pytest.skip(reason)
    with configured(cluster, config or {}), other_gpus(cluster, TWO_A100):
        processes = Processes(cluster, dra=True, binding=binding)
        with cluster.steps("Lamina with ResourceClaims"):
            processes.start()
        offered(cluster)
        yield processes
        processes.remove()
        cluster.kubectl("delete", "resourceslices", "--all")


def offered(cluster: RealCluster) -> None:
    """Wait until all GPUs are offered to claims."""

    def gpus() -> list[str]:
        return sorted(name for name in devices(cluster) if "mig" not in name)

    wait_until(lambda: gpus() == ["gpu-0", "gpu-0", "gpu-1", "gpu-1"], lambda: str(devices(cluster)))


def exactly(cls: str = CLASS, **more: Any) -> Object:
    """A request of a claim, without its name."""
    return {"exactly": {"deviceClassName": cls, **more}}


def amounts(**requests: str) -> Object:
    return {"capacity": {"requests": requests}}


def claim(name: str, *requests: Object, **devices: Any) -> Object:
    """A claim with the requests gpu-0, gpu-1 and so on."""
    named = [{"name": f"gpu-{number}", **request} for number, request in enumerate(requests)]
    spec = {"devices": {"requests": named, **devices}}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def user(name: str, claim_name: str, *command: str, containers: int = 1, node: str = "", **spec: Any) -> Object:
    """A pod whose containers, `main` and `c1` and so on, use all of a claim."""
    made: Object = json.loads(pod(name, *command, node=node, **spec))
    main = made["spec"]["containers"][0] | {"resources": {"claims": [{"name": "gpu"}]}}
    made["spec"]["containers"] = [
        main | {"name": "main" if number == 0 else f"c{number}"} for number in range(containers)
    ]
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim_name}]
    return made


def apply(cluster: RealCluster, *objects: Object) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def share(cluster: RealCluster, name: str, *, node: str = "", containers: int = 1, **requests: str) -> None:
    """A claim for so much of a GPU, and a pod with it; all of a GPU where no amounts are given."""
    request = exactly(**amounts(**requests)) if requests else exactly()
    apply(cluster, claim(name, request), user(name, name, node=node, containers=containers))


def devices(cluster: RealCluster, node: str = "") -> list[str]:
    """The devices in the node's slices of the newest generation, or in those of all nodes."""
    slices = json.loads(cluster.kubectl("get", "resourceslices", "-o", "json"))["items"]
    mine = [each["spec"] for each in slices if node in ("", each["spec"].get("nodeName"))]
    return [device["name"] for spec in mine for device in spec.get("devices") or ()]


def names(cluster: RealCluster) -> list[str]:
    found = json.loads(cluster.kubectl("get", "resourceclaims", "-A", "-o", "json"))["items"]
    return [each["metadata"]["name"] for each in found]


def delete_claims(cluster: RealCluster) -> None:
    """Leave no claim and no template behind; their pods are gone already."""
    cluster.kubectl("delete", "resourceclaims,resourceclaimtemplates", "--all", "--wait=false")
    wait_until(lambda: not names(cluster), lambda: cluster.kubectl("get", "resourceclaims", "-A", "-o", "yaml"))


def allocate(cluster: RealCluster, name: str, *sizes: int, container: str = "main") -> list[str]:
    """What CUDA answers to allocations of one program in the container."""
    script = ALLOCATE.format(sizes=(*sizes,))
    return cluster.kubectl("exec", name, "-c", container, "--", "python3", "-c", script).split()


def seen(cluster: RealCluster, name: str, container: str = "main", namespace: str = "default") -> list[str]:
    """The UUIDs of the devices in the container, those of MIG devices without their GPU."""
    listed = cluster.kubectl("exec", name, "-n", namespace, "-c", container, "--", "nvidia-smi", "-L").splitlines()
    found = [line.rpartition("UUID: ")[2].rstrip(")") for line in listed]
    return [each for each in found if each.startswith("MIG-")] or found
