"""ResourceClaims on a cluster: whether its server has what they need, and Lamina with agents that serve them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.processes import Processes
from tests.cluster.kubernetes import Kubernetes
from tests.cluster.queries import TWO_A100, configured, other_gpus
from tests.scenarios.resource_claims import API, devices, without_claims
from tests.waiting import wait_until


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
def serving(cluster: RealCluster, config: str, *, binding: bool = False) -> Iterator[Processes]:
    """Two nodes with two A100 each, whose agents serve claims. Skips where claims cannot share GPUs."""
    if reason := missing(cluster):
        pytest.skip(reason)
    with configured(cluster, yaml.safe_load(config) or {}), other_gpus(cluster, TWO_A100):
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
        return sorted(name for name in devices(Kubernetes(cluster)) if "mig" not in name)

    wait_until(lambda: gpus() == ["gpu-0", "gpu-0", "gpu-1", "gpu-1"], lambda: str(gpus()))


def delete_claims(cluster: RealCluster) -> None:
    """Leave no claim and no template behind; their pods are gone already."""
    cluster.kubectl("delete", "resourceclaims,resourceclaimtemplates", "--all", "--wait=false")
    without_claims(Kubernetes(cluster))
