"""Pods and Jobs of random shapes, as manifests."""

import json
from random import Random
from typing import Any

from tests.cluster.queries import pod
from tests.scenarios.resource_claims import MIG_CLASS, amounts, claim, exactly, selecting

Object = dict[str, Any]
LIST = {"apiVersion": "v1", "kind": "List"}
LABEL = "soak"
NO_IMAGE = "stage.local/none:1"
MEMORY_MIB = (500, 1000, 3000, 8000, 20000)
INSTANCE_MIB = (3000, 3000, 9000, 18000)
CORES = (0, 0, 10, 30, 60)
CLAIMS: dict[str, Object] = {
    "soak-small": {"memory": "2Gi"},
    "soak-capped": {"memory": "4Gi", "cores": "30"},
    "soak-large": {"memory": "20Gi"},
    "soak-whole": {},
}
"""What claims of these templates ask for; all of a GPU where nothing is named."""
PROFILES = {"soak-mig": "1g.5gb", "soak-large-mig": "3g.20gb"}
"""The MIG devices for which claims of these templates ask. They are made on the nodes that may be partitioned."""


def claim_templates() -> list[Object]:
    """The ResourceClaimTemplates of workloads with claims."""
    requests = {name: exactly(**amounts(**wanted)) for name, wanted in CLAIMS.items()}
    for name, profile in PROFILES.items():
        requests[name] = exactly(MIG_CLASS, **selecting(f"gpu.profile == '{profile}'"))
    claims = [claim(name, request) for name, request in requests.items()]
    return [each | {"kind": "ResourceClaimTemplate", "spec": {"spec": each["spec"]}} for each in claims]


def made(random: Random, number: int, version: tuple[int, int], *, claims: bool) -> Object:
    """Workload number so and so: a pod that runs on, now and then one with a bad image, or a Job that ends by itself.

    Some have an init container with a share of its own, or one that goes on as a sidecar, where Kubernetes' version
    knows such. Some have a ResourceClaim in the place of resources, if there are `claims`.
    """
    job = random.random() < 0.3
    (asks,) = random.choices((_share, _instance, _replica, _nothing), (7, 2, 1, 5 if claims else 0))
    containers = [
        _container(random, name, asks(random), job) for name in ("main", "second")[: random.choice((1, 1, 1, 2))]
    ]
    if random.random() < 0.05:
        containers[0]["image"] = NO_IMAGE
    spec = json.loads(pod("any"))["spec"] | {"containers": containers}
    if asks is _nothing:
        spec["resourceClaims"] = [
            {"name": "gpu", "resourceClaimTemplateName": random.choice(sorted({**CLAIMS, **PROFILES}))}
        ]
        for each in containers:
            each["resources"] = {"claims": [{"name": "gpu"}]}
    if asks is _share and random.random() < 0.25:
        spec["initContainers"] = _inits(random, containers[0], version)
    meta: Object = {"name": f"soak-{number}", "labels": {LABEL: str(number)}}
    inner: Object = {"labels": meta["labels"]}
    if asks is _instance:
        inner["annotations"] = meta["annotations"] = {"nvidia.com/vgpu-mode": "mig"}
    if not job:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    template = {"metadata": inner, "spec": spec | {"restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}


def _inits(random: Random, main: Object, version: tuple[int, int]) -> list[Object]:
    """Kubelet 1.20 fails pods whose init containers name memory, which is no device of the node."""
    if version >= (1, 29) and random.random() < 0.5:
        return [_container(random, "sidecar", _share(random), False) | {"restartPolicy": "Always"}]
    if version == (1, 20):
        return []
    share = _share(random) | {"nvidia.com/gpu": main["resources"]["limits"]["nvidia.com/gpu"]}
    return [_container(random, "first", share, True)]


def _share(random: Random) -> Object:
    """By memory and compute, or whole GPUs, which a node allocates by grants or lets kubelet choose."""
    limits = {"nvidia.com/gpu": random.choice((1, 1, 2))}
    if random.random() < 0.15:
        return limits
    limits["nvidia.com/gpumem"] = random.choice(MEMORY_MIB)
    if cores := random.choice(CORES):
        limits["nvidia.com/gpucores"] = cores
    return limits


def _instance(random: Random) -> Object:
    return {"nvidia.com/gpu": 1, "nvidia.com/gpumem": random.choice(INSTANCE_MIB)}


def _replica(random: Random) -> Object:
    return {"nvidia.com/gpu.shared": 1}


def _nothing(random: Random) -> Object:
    return {}


def _container(random: Random, name: str, limits: Object, ends: bool) -> Object:
    held = random.choice((0, 100, 300))
    seconds = random.choice((1, 2, 4)) if ends else 3600
    command = ["gpu-load", "--kernel-ms", "1", "--memory-mib", str(held), "--seconds", str(seconds)]
    if not ends and random.random() < 0.7:
        command = ["sleep", "infinity"]
    container: Object = json.loads(pod(name, *command, limits=limits))["spec"]["containers"][0]
    return container | {"name": name}
