"""What a pod takes of its node's CPU and memory, and what a node offers."""

from typing import Any

import pytest

from lamina.core.host_size import HostSize, asked_by, offered_by


def container(cpu: str = "0", memory: str = "0", part: str = "requests", **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {part: {"cpu": cpu, "memory": memory}}, **more}


def sidecar(cpu: str) -> dict[str, Any]:
    return container(cpu, restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ({}, (0, 0)),
        ({"containers": [{"name": "c"}]}, (0, 0)),
        ({"containers": [container("1", "1Gi"), container("500m", "512Mi")]}, (1500, 1536)),
        ({"containers": [container("2", "1Gi", "limits")]}, (2000, 1024)),
        ({"containers": [container("0.0001", "1")]}, (1, 1)),
        ({"containers": [container("1")], "initContainers": [container("3"), container("2")]}, (3000, 0)),
        ({"containers": [container("2")], "initContainers": [sidecar("1"), container("1500m")]}, (3000, 0)),
        ({"containers": [container("1")], "initContainers": [sidecar("1"), container("3")]}, (4000, 0)),
        ({"containers": [container("1")], "initContainers": [container("3"), sidecar("1")]}, (3000, 0)),
        ({"containers": [container("1")], "overhead": {"cpu": "250m", "memory": "64Mi"}}, (1250, 64)),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "5"}}}, (5000, 0)),
        ({"containers": [container("one")]}, (0, 0)),
    ],
)
def test_what_a_pod_asks(spec: dict[str, Any], size: tuple[int, int]) -> None:
    assert asked_by({"spec": spec}) == size


@pytest.mark.parametrize("written", ["9E", "9223372036854775807", "1e99", "8Ei"])
def test_amounts_are_at_most_2_to_the_53(written: str) -> None:
    """Arrays of 64-bit integers hold them and add them up."""
    huge = {"cpu": written, "memory": "1e99"}
    pod = {"containers": [{"name": "c", "resources": {"requests": huge}}] * 3, "overhead": huge}
    assert asked_by({"spec": pod}) == offered_by({"status": {"allocatable": huge}}) == (2**53, 2**53)
    negative = {"cpu": f"-{written}", "memory": "-1e99"}
    assert asked_by({"spec": {"overhead": negative}}) == (-(2**53), -(2**53))


def test_what_a_node_offers() -> None:
    status = {"capacity": {"cpu": "8", "memory": "8Gi"}, "allocatable": {"cpu": "7500m", "memory": "7Gi"}}
    assert offered_by({"status": status}) == HostSize(7500, 7168)
    assert offered_by({"status": {"capacity": status["capacity"]}}) == HostSize(8000, 8192)
    assert offered_by({}) == HostSize()
