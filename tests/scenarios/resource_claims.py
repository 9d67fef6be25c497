"""ResourceClaims, pods with them and what CUDA answers in these, on a lab and on the test cluster."""

import json
from typing import Any

from tests.scenarios.labs import Cluster, Object
from tests.waiting import wait_until

API = "resource.k8s.io/v1"
CLASS, MIG_CLASS = "gpu.nvidia.com", "mig.nvidia.com"
GIB = 1 << 30
ALLOCATE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, {gpu}) == 0
for size in {sizes}:
    print(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)), flush=True)
{then}
"""
OUT_OF_MEMORY = "2"
HOLD = ALLOCATE.format(sizes=(), then='import time; print("holds", flush=True); time.sleep(3600)', gpu=0)
"""A program that has a context and nothing else."""


def exactly(cls: str = CLASS, **more: Any) -> Object:
    """A request of a claim, without its name."""
    return {"exactly": {"deviceClassName": cls, **more}}


def amounts(**requests: str) -> Object:
    return {"capacity": {"requests": requests}} if requests else {}


def selecting(expression: str) -> Object:
    """The devices for which this is true; `gpu` stands for the driver's attributes."""
    expression = expression.replace("gpu.", f"device.attributes['{CLASS}'].")
    return {"selectors": [{"cel": {"expression": expression}}]}


def claim(name: str, *requests: Object, **devices: Any) -> Object:
    """A claim with the requests gpu-0, gpu-1 and so on."""
    named = [{"name": f"gpu-{number}", **request} for number, request in enumerate(requests)]
    spec = {"devices": {"requests": named, **devices}}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def user(name: str, claim_name: str, *command: str, containers: int = 1, node: str = "") -> Object:
    """A pod whose containers, `main` and `c1` and so on, use all of a claim. They sleep unless a command is given."""
    each = {
        "image": "ubuntu",
        "command": list(command) or ["sleep", "infinity"],
        "resources": {"claims": [{"name": "gpu"}]},
    }
    names = ["main", *(f"c{number}" for number in range(1, containers))]
    spec = {
        "terminationGracePeriodSeconds": 0,
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim_name}],
        "containers": [{"name": each_name, **each} for each_name in names],
    }
    return on({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, node)


def on(pod: Object, node: str) -> Object:
    """The pod, which only this node may run; any where none is named."""
    pod["spec"] |= {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return pod


def apply(lab: Cluster, *objects: Object) -> None:
    lab.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def share(lab: Cluster, name: str, *, node: str = "", containers: int = 1, **requests: str) -> None:
    """A claim for so much of a GPU, and a pod with it; all of a GPU where no amounts are given."""
    request = exactly(**amounts(**requests))
    apply(lab, claim(name, request), user(name, name, node=node, containers=containers))


def slices(lab: Cluster) -> list[Object]:
    return list(lab.read(f"/apis/{API}/resourceslices")["items"])


def devices(lab: Cluster, node: str = "") -> list[str]:
    """The devices in the node's slices, or in those of all nodes."""
    mine = [each["spec"] for each in slices(lab) if node in ("", each["spec"].get("nodeName"))]
    return [device["name"] for spec in mine for device in spec.get("devices") or ()]


def offered(lab: Cluster) -> None:
    """Wait until the node offers devices to claims."""
    wait_until(lambda: devices(lab, lab.node), lambda: str(slices(lab)))


def claims(lab: Cluster) -> list[Object]:
    """Those of all namespaces."""
    return list(lab.read(f"/apis/{API}/resourceclaims")["items"])


def names(lab: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in claims(lab)]


def status(lab: Cluster, name: str) -> Object:
    """Of a claim."""
    (found,) = (each["status"] for each in claims(lab) if each["metadata"]["name"] == name)
    return dict(found)


def results(lab: Cluster, name: str) -> list[Object]:
    """What was allocated to a claim."""
    return list(status(lab, name)["allocation"]["devices"]["results"])


def without_claims(lab: Cluster) -> None:
    """Wait until no claim is left; those that were generated end with their pods."""
    wait_until(lambda: not claims(lab), lambda: str(claims(lab)))


def delete_claims(lab: Cluster) -> None:
    """Leave no pod, claim or template behind."""
    lab.kubectl("delete", "resourceclaimtemplates", "--all")
    lab.delete_workloads()
    lab.kubectl("delete", "resourceclaims", "--all")
    without_claims(lab)


def unallocated(lab: Cluster, pod: str) -> bool:
    """Whether the scheduler found no devices for the pod."""
    conditions = lab.read(f"/api/v1/namespaces/default/pods/{pod}")["status"].get("conditions", [])
    return any("cannot allocate all claims" in each.get("message", "") for each in conditions)


def allocate(lab: Cluster, pod: str, *sizes: int, container: str = "main", gpu: int = 0) -> list[str]:
    """What CUDA answers to allocations of one program."""
    script = ALLOCATE.format(sizes=sizes, then="", gpu=gpu)
    return lab.kubectl("exec", pod, "-c", container, "--", "python3", "-c", script).split()


def listed(lab: Cluster, pod: str, container: str = "main", namespace: str = "default") -> str:
    """The devices of a container."""
    return lab.kubectl("exec", pod, "-n", namespace, "-c", container, "--", "nvidia-smi", "-L")


def seen(lab: Cluster, pod: str, container: str = "main", namespace: str = "default") -> list[str]:
    """The UUIDs of the devices in the container, those of MIG devices without their GPU."""
    found = [line.rpartition("UUID: ")[2].rstrip(")") for line in listed(lab, pod, container, namespace).splitlines()]
    return [each for each in found if each.startswith("MIG-")] or found
