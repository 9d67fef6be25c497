"""Binding conditions in the lab: pods are bound once their devices are prepared, and another node is tried if not."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES, apply, running
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

CONFIG = EXAMPLES / "configuration" / "v1alpha1" / "mig-for-claims.yaml"
MACHINES = EXAMPLES / "lab-dra-binding.yaml"
HOLD = """
import ctypes, time
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
print("holds", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def binding_lab(start_lab: StartLab) -> Lab:
    lab = start_lab("binding", "--machines", str(MACHINES), "--config", str(CONFIG))
    wait_until(lambda: len(slices(lab)) == 4, lambda: str(slices(lab)))
    return lab


@pytest.fixture
def lab(binding_lab: Lab) -> Iterator[Lab]:
    yield binding_lab
    binding_lab.kubectl("uncordon", "node-1")
    binding_lab.kubectl("delete", "resourceclaimtemplates", "--all")
    binding_lab.delete_workloads()
    wait_until(lambda: not claims(binding_lab), lambda: str(claims(binding_lab)))


def slices(lab: Lab) -> list[dict[str, Any]]:
    return list(lab.read("/apis/resource.k8s.io/v1/resourceslices")["items"])


def claims(lab: Lab) -> list[dict[str, Any]]:
    return list(lab.read("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims")["items"])


def scheduled(lab: Lab, pod: str) -> str:
    """What events say of the pod's scheduling."""
    events = lab.read("/api/v1/namespaces/default/events")["items"]
    return "\n".join(each["message"] for each in events if each["involvedObject"]["name"] == pod)


def test_a_pod_is_bound_once_its_claim_is_prepared(lab: Lab) -> None:
    devices = [device for each in slices(lab) for device in each["spec"].get("devices", ())]
    assert {tuple(device["bindingConditions"]) for device in devices} == {("lamina.dev/Prepared",)}
    apply(lab, "dra/share")
    running(lab, "shared-claim")
    (claim,) = claims(lab)
    (device,) = claim["status"]["devices"]
    assert [each["type"] for each in device["conditions"]] == ["lamina.dev/Prepared"]
    assert device["shareID"] == claim["status"]["allocation"]["devices"]["results"][0]["shareID"]


def test_another_node_is_tried_where_a_gpu_refuses_mig(lab: Lab) -> None:
    """A program that an administrator runs keeps the GPU of node-0 from its MIG mode; node-1 can be used later."""
    lab.kubectl("label", "namespace", "default", "resource.kubernetes.io/admin-access=true", "--overwrite")
    lab.kubectl("cordon", "node-1")
    exactly = {
        "deviceClassName": "gpu.nvidia.com",
        "adminAccess": True,
        "capacity": {"requests": {"memory": "1Mi"}},
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "admin"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }
    container = {
        "name": "main",
        "image": "python",
        "command": ["python3", "-c", HOLD],
        "resources": {"claims": [{"name": "gpu"}]},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "admin"},
        "spec": {
            "restartPolicy": "Never",
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "admin"}],
            "containers": [container],
        },
    }
    for each in (claim, pod):
        lab.apply(json.dumps(each))
    running(lab, "admin")
    wait_until(lambda: "holds" in lab.kubectl("logs", "admin"), lambda: scheduled(lab, "admin"))
    apply(lab, "dra/mig-on-demand")
    refusal = "cannot change the MIG mode of GPU 0 while it is in use by process"
    wait_until(lambda: refusal in scheduled(lab, "mig-on-demand-claim"), lambda: scheduled(lab, "mig-on-demand-claim"))
    lab.kubectl("uncordon", "node-1")
    running(lab, "mig-on-demand-claim")
    found = lab.read("/api/v1/namespaces/default/pods/mig-on-demand-claim")
    assert found["spec"]["nodeName"] == "node-1"
    (allocated,) = [each for each in claims(lab) if each["metadata"]["name"].startswith("mig-on-demand-claim")]
    assert {each["pool"] for each in allocated["status"]["allocation"]["devices"]["results"]} == {"node-1"}
