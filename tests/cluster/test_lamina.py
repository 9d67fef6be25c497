"""Lamina on real kubelets and a real scheduler, its parts as programs of the sandboxes."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.components.cluster import RealCluster
from tests.cluster.queries import delete_pods, deployment, ended, pod, running, sh, why_pending
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def _without_grants(cluster: RealCluster, without_pods: None) -> Iterator[None]:
    yield
    delete_pods(cluster)
    wait_until(
        lambda: cluster.kubectl("get", "grants", "-A", "-o", "name") == "", lambda: "grants stay behind their pods"
    )


def test_a_pod_sees_what_it_was_granted(cluster: RealCluster) -> None:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}
    cluster.kubectl("apply", "-f", "-", stdin=pod("share", limits=limits))
    running(cluster, "share")
    assert "0MiB /   3000MiB" in sh(cluster, "share", "nvidia-smi")


def test_nonsense_is_refused_with_the_reason(cluster: RealCluster) -> None:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 101}
    with pytest.raises(Exception, match="gpucores"):
        cluster.kubectl("apply", "-f", "-", stdin=pod("nonsense", limits=limits))


def test_a_pod_that_fits_nowhere_waits_with_the_reason(cluster: RealCluster) -> None:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 40000}
    cluster.kubectl("apply", "-f", "-", stdin=pod("large", limits=limits))
    wait_until(lambda: "40000" in why_pending(cluster, "large"), lambda: why_pending(cluster, "large"))


def test_s4_1_ten_replicas_of_10000_mib_on_each_node(cluster: RealCluster) -> None:
    """Two nodes with two GPUs of 32768 MiB: 12 run and 4 of 16 wait, as 6 run and 4 of 10 wait on one node."""
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 10000, "nvidia.com/gpucores": 10}
    cluster.kubectl("apply", "-f", "-", stdin=deployment("s41", pod("s41", limits=limits), 16))

    def phases() -> dict[str, int]:
        pods = json.loads(cluster.kubectl("get", "pods", "-l", "app=s41", "-o", "json"))["items"]
        found = [each["status"].get("phase", "") for each in pods]
        return {name: found.count(name) for name in sorted(set(found))}

    wait_until(lambda: phases() == {"Pending": 4, "Running": 12}, lambda: f"pods are {phases()}")


def test_a_program_is_held_to_its_memory(cluster: RealCluster) -> None:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000}
    for name, mib in (("fits", "600"), ("exceeds", "2000")):
        command = ["gpu-load", "--seconds", "0.2", "--memory-mib", mib]
        cluster.kubectl("apply", "-f", "-", stdin=pod(name, *command, limits=limits, restartPolicy="Never"))
    assert (ended(cluster, "fits"), ended(cluster, "exceeds")) == ("Succeeded", "Failed")
    assert "out of memory" in cluster.kubectl("logs", "exceeds")
