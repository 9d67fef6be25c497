"""The cluster under test itself: pods run, reach each other and the API server, and nodes come back from a reboot."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.components.cluster import RealCluster
from tests.cluster.queries import delete_pods, ended, phase, pod, running, sh
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def _without_pods(cluster: RealCluster) -> Iterator[None]:
    yield
    delete_pods(cluster)


def test_a_pod_runs_on_each_node(cluster: RealCluster) -> None:
    for node in cluster.nodes:
        cluster.kubectl("apply", "-f", "-", stdin=pod(f"on-{node.name}", node=node.name))
    for node in cluster.nodes:
        running(cluster, f"on-{node.name}")
        assert sh(cluster, f"on-{node.name}", "hostname") == f"on-{node.name}\n"


def test_a_failed_pod_differs_from_a_completed_one(cluster: RealCluster) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=pod("done", "true", restartPolicy="Never"))
    cluster.kubectl("apply", "-f", "-", stdin=pod("failing", "false", restartPolicy="Never"))
    assert (ended(cluster, "done"), ended(cluster, "failing")) == ("Succeeded", "Failed")


def test_pods_reach_each_other_and_the_api_server_by_services(cluster: RealCluster) -> None:
    server = json.loads(pod("server", "python3", "-m", "http.server", "--directory", "/etc", "8000", node="node1"))
    server["metadata"]["labels"] = {"app": "server"}
    ports = [{"port": 80, "targetPort": 8000}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}}
    service["spec"] = {"selector": {"app": "server"}, "ports": ports}
    both = {"apiVersion": "v1", "kind": "List", "items": [server, service]}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(both))
    running(cluster, "server")
    address = cluster.kubectl("get", "service", "server", "-o", "jsonpath={.spec.clusterIP}")
    fetch = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read(6))"
    for node in ("node1", "node2"):
        ask = f"python3 -c '{fetch}' http://{address}/debian_version"
        command = ["sh", "-c", f"for i in 1 2 3 4 5; do {ask} && exit; sleep 1; done; exit 1"]
        cluster.kubectl("apply", "-f", "-", stdin=pod(f"client-{node}", *command, node=node, restartPolicy="Never"))
    for node in ("node1", "node2"):
        assert ended(cluster, f"client-{node}") == "Succeeded"
        assert "b'12." in cluster.kubectl("logs", f"client-{node}")
    dial = "import socket; socket.create_connection(('10.233.0.1', 443), 5); print('reached')"
    cluster.kubectl("apply", "-f", "-", stdin=pod("dial", "python3", "-c", dial, restartPolicy="Never"))
    assert ended(cluster, "dial") == "Succeeded"


def test_a_node_comes_back_from_a_reboot_with_its_disk(cluster: RealCluster) -> None:
    node = cluster.nodes[1]
    cluster.kubectl("apply", "-f", "-", stdin=pod("stays", node=node.name))
    running(cluster, "stays")
    (node.folder / "disk/lib/mark").write_text("kept")
    node.reboot()
    assert node.sandbox.run("cat", "/var/lib/mark") == "kept"

    def restarted() -> bool:
        (status,) = json.loads(cluster.kubectl("get", "pod", "stays", "-o", "json"))["status"]["containerStatuses"]
        return bool(status["restartCount"] == 1 and status["ready"])

    wait_until(restarted, lambda: cluster.kubectl("describe", "pod", "stays"))
    assert phase(cluster, "stays") == "Running"
