"""Ephemeral containers as real processes: added to a running pod, seen, entered, and ended with it."""

from __future__ import annotations

from typing import Any

from lamina.ports.kube import PODS
from tests.lab_kubelet.cluster import OneKubelet, container, is_running, marked, phase, state
from tests.waiting import wait_until

GROUP = "ephemeralContainerStatuses"


def add(cluster: OneKubelet, name: str, added: dict[str, Any]) -> None:
    patch = [{"op": "add", "path": "/spec/ephemeralContainers", "value": [added]}]
    cluster.run(cluster.kube.patch(PODS, name, patch, namespace="default", subresource="ephemeralcontainers"))


def test_one_runs_next_to_the_others_and_is_not_restarted(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container("sleep 600"))
    shared_cluster.until(name, is_running, "running")
    add(shared_cluster, name, container("echo $HOSTNAME; exit 3", "look"))
    pod = shared_cluster.until(name, lambda pod: "terminated" in state(pod, group=GROUP), "the added one has ended")
    assert state(pod, group=GROUP)["terminated"]["exitCode"] == 3
    assert pod["status"][GROUP][0]["restartCount"] == 0
    assert is_running(pod)
    assert shared_cluster.log(name, "look") == f"{name}\n"
    shared_cluster.delete(name)
    shared_cluster.until_gone(name)


def test_it_ends_with_its_pod_and_does_not_decide_its_phase(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container("sleep 4"), restartPolicy="Never")
    shared_cluster.until(name, is_running, "running")
    add(shared_cluster, name, container("exec sleep 600", "look"))
    shared_cluster.until(name, lambda pod: "running" in state(pod, group=GROUP), "the added one runs")
    pod = shared_cluster.until(name, lambda pod: phase(pod) == "Succeeded", "succeeded")
    assert state(pod, group=GROUP)["terminated"]["exitCode"] == 143
    wait_until(lambda: marked(f"HOSTNAME={name}\0") == [], "no process is left")
    shared_cluster.delete(name)
    shared_cluster.until_gone(name)
