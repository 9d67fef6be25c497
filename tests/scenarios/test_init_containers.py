"""Pods start whatever mixture of init containers, sidecars and containers has GPUs, in every dialect."""

from typing import Any

import pytest
import yaml

from tests.scenarios.examples import running
from tests.scenarios.labs import Lab

HAMI = {"nvidia.com/gpumem": 3000}
SHAPES: dict[str, dict[str, Any]] = {
    "init-alone": {"init": [HAMI]},
    "whole-gpu-in-init": {"init": [{"nvidia.com/gpu": 1}]},
    "two-inits": {"init": [HAMI, {"nvidia.com/gpumem": 4000}]},
    "fewer-in-the-second-init": {"init": [{"nvidia.com/gpu": 2, **HAMI}, {"nvidia.com/gpu": 1, **HAMI}]},
    "init-with-a-cpu-sidecar": {"init": [HAMI], "sidecar": {}},
    "init-before-a-sidecar": {"init": [{"nvidia.com/gpu": 2, **HAMI}, HAMI], "sidecar": HAMI},
    "volcano": {"init": [{"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 3000}]},
    "kai": {"init": [{}], "annotations": {"gpu-memory": "3000", "gpu-fraction-container-name": "init-0"}},
}


def manifest(name: str, shape: dict[str, Any]) -> dict[str, Any]:
    """A pod whose init containers look at their GPU."""
    look = {"image": "any", "command": ["sh", "-c", "nvidia-smi"]}
    inits = [{"name": f"init-{n}", **look, "resources": {"limits": each}} for n, each in enumerate(shape["init"])]
    wait = {"image": "any", "command": ["sleep", "infinity"]}
    if "sidecar" in shape:
        limits = {"limits": shape["sidecar"]}
        inits.append({"name": "sidecar", **wait, "resources": limits, "restartPolicy": "Always"})
    spec = {"initContainers": inits, "containers": [{"name": "main", **wait}]}
    if "annotations" in shape:
        spec["schedulerName"] = "kai-scheduler"
    metadata = {"name": name, "annotations": shape.get("annotations", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("name", SHAPES)
def test_a_pod_whose_containers_have_no_gpu_starts_and_its_init_containers_have_theirs(lab: Lab, name: str) -> None:
    lab.apply(yaml.safe_dump(manifest(name, SHAPES[name])))
    running(lab, name)
    for number, limits in enumerate(SHAPES[name]["init"]):
        memory = limits.get("nvidia.com/gpumem") or (32768 if limits.get("nvidia.com/gpu") else 3000)
        assert f"0MiB / {memory:5}MiB" in lab.kubectl("logs", name, "-c", f"init-{number}")
