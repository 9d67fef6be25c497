"""The cluster under test itself: pods run, reach each other and the API server, and nodes come back from a reboot."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.asking import delete_pods, ended, phase, pod, running, sh, until
from tests.cluster.stage.stage import Stage


@pytest.fixture(autouse=True)
def _without_pods(stage: Stage) -> Iterator[None]:
    yield
    delete_pods(stage)


def test_a_pod_runs_on_each_node(stage: Stage) -> None:
    for node in stage.nodes:
        stage.kubectl("apply", "-f", "-", stdin=pod(f"on-{node.name}", node=node.name))
    for node in stage.nodes:
        running(stage, f"on-{node.name}")
        assert sh(stage, f"on-{node.name}", "hostname") == f"on-{node.name}\n"


def test_a_pod_that_fails_is_told_from_one_that_is_done(stage: Stage) -> None:
    stage.kubectl("apply", "-f", "-", stdin=pod("done", "true", restartPolicy="Never"))
    stage.kubectl("apply", "-f", "-", stdin=pod("failing", "false", restartPolicy="Never"))
    assert (ended(stage, "done"), ended(stage, "failing")) == ("Succeeded", "Failed")


def test_pods_reach_each_other_and_the_api_server_by_services(stage: Stage) -> None:
    server = json.loads(pod("server", "python3", "-m", "http.server", "--directory", "/etc", "8000", node="node1"))
    server["metadata"]["labels"] = {"app": "server"}
    ports = [{"port": 80, "targetPort": 8000}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}}
    service["spec"] = {"selector": {"app": "server"}, "ports": ports}
    both = {"apiVersion": "v1", "kind": "List", "items": [server, service]}
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(both))
    running(stage, "server")
    address = stage.kubectl("get", "service", "server", "-o", "jsonpath={.spec.clusterIP}")
    fetch = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read(6))"
    for node in ("node1", "node2"):
        ask = f"python3 -c '{fetch}' http://{address}/debian_version"
        command = ["sh", "-c", f"for i in 1 2 3 4 5; do {ask} && exit; sleep 1; done; exit 1"]
        stage.kubectl("apply", "-f", "-", stdin=pod(f"client-{node}", *command, node=node, restartPolicy="Never"))
    for node in ("node1", "node2"):
        assert ended(stage, f"client-{node}") == "Succeeded"
        assert "b'12." in stage.kubectl("logs", f"client-{node}")
    dial = "import socket; socket.create_connection(('10.233.0.1', 443), 5); print('reached')"
    stage.kubectl("apply", "-f", "-", stdin=pod("dial", "python3", "-c", dial, restartPolicy="Never"))
    assert ended(stage, "dial") == "Succeeded"


def test_a_node_comes_back_from_a_reboot_with_its_disk(stage: Stage) -> None:
    node = stage.nodes[1]
    stage.kubectl("apply", "-f", "-", stdin=pod("stays", node=node.name))
    running(stage, "stays")
    (node.folder / "disk/lib/mark").write_text("kept")
    node.reboot()
    assert node.room.run("cat", "/var/lib/mark") == "kept"

    def restarted() -> bool:
        (status,) = json.loads(stage.kubectl("get", "pod", "stays", "-o", "json"))["status"]["containerStatuses"]
        return bool(status["restartCount"] == 1 and status["ready"])

    until(restarted, lambda: stage.kubectl("describe", "pod", "stays"))
    assert phase(stage, "stays") == "Running"
