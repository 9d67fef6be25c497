"""Pods and Jobs of random shapes, as manifests."""

import json
from random import Random
from typing import Any

from tests.cluster.asking import pod

Object = dict[str, Any]
LIST = {"apiVersion": "v1", "kind": "List"}
LABEL = "soak"
NO_IMAGE = "stage.local/none:1"
MEMORY_MIB = (500, 1000, 3000, 8000, 20000)
CORES = (0, 0, 10, 30, 60)


def made(random: Random, number: int, *, inits: bool) -> Object:
    """Workload number so and so: a pod that runs on, now and then one with a bad image, or a Job that ends by itself.

    With `inits`, some have an init container with a share of its own.
    """
    job = random.random() < 0.3
    containers = [_container(random, name, ends=job) for name in ("main", "second")[: random.choice((1, 1, 1, 2))]]
    if random.random() < 0.05:
        containers[0]["image"] = NO_IMAGE
    spec = json.loads(pod("any"))["spec"] | {"containers": containers}
    if inits and random.random() < 0.2:
        first = _container(random, "first", ends=True)
        first["resources"]["limits"]["nvidia.com/gpu"] = containers[0]["resources"]["limits"]["nvidia.com/gpu"]
        spec["initContainers"] = [first]
    meta = {"name": f"soak-{number}", "labels": {LABEL: str(number)}}
    if not job:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    template = {"metadata": {"labels": meta["labels"]}, "spec": spec | {"restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}


def _container(random: Random, name: str, *, ends: bool) -> Object:
    limits: dict[str, int] = {"nvidia.com/gpu": random.choice((1, 1, 2))}
    memory = 0 if random.random() < 0.1 else random.choice(MEMORY_MIB)
    if memory:
        limits["nvidia.com/gpumem"] = memory
        if cores := random.choice(CORES):
            limits["nvidia.com/gpucores"] = cores
    held = random.choice((0, 100, 300))
    seconds = random.choice((1, 2, 4)) if ends else 3600
    command = ["gpu-load", "--kernel-ms", "1", "--memory-mib", str(held), "--seconds", str(seconds)]
    if not ends and random.random() < 0.7:
        command = ["sleep", "infinity"]
    container: Object = json.loads(pod(name, *command, limits=limits))["spec"]["containers"][0]
    return container | {"name": name}
