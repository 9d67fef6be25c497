"""A pod's status as Kubernetes writes it."""

from __future__ import annotations

from typing import Any

import pytest

from lamina_lab.kubelet.model.records import Container, Running, Terminated, Waiting, containers_of
from lamina_lab.kubelet.pods.status import PodFailure, PodProgress, phase, pod_status, qos_class, rejected_status

NOW = 1_000_000.0
STAMP = "1970-01-12T13:46:40Z"
POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u", "creationTimestamp": STAMP},
    "spec": {"containers": [{"name": "a", "image": "i"}], "initContainers": [{"name": "init", "image": "i"}]},
}


def status(
    containers: list[Container], pod: dict[str, Any] = POD, *, ended: bool = False, failure: PodFailure | None = None,
    now: float = NOW, before: Any = (),
) -> dict[str, Any]:  # fmt: skip
    progress = PodProgress(addresses=("10.0.0.1", "127.1.1.1"), started_at=NOW, ended=ended, failure=failure)
    return pod_status(pod, containers, progress, now=now, before=before)


def by_type(conditions: list[dict[str, Any]]) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in conditions}


def records() -> tuple[list[Container], Container, Container]:
    containers = containers_of(POD["spec"])
    return containers, containers[0], containers[1]


def test_fresh_pod_is_pending() -> None:
    containers, _, _ = records()
    shown = status(containers)
    assert (shown["phase"], shown["startTime"], shown["hostIP"], shown["podIP"]) == (
        "Pending",
        STAMP,
        "10.0.0.1",
        "127.1.1.1",
    )
    assert shown["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert by_type(shown["conditions"]) == {
        "PodReadyToStartContainers": "False",
        "Initialized": "False",
        "Ready": "False",
        "ContainersReady": "False",
        "PodScheduled": "True",
    }
    unready = next(entry for entry in shown["conditions"] if entry["type"] == "Initialized")
    assert unready["message"] == "containers with incomplete status: [init]"


def test_running_pod_is_ready_and_keeps_its_times() -> None:
    containers, init, app = records()
    init.terminated(Terminated(0, "Completed", NOW, NOW))
    app.state, app.container_id, app.started, app.ready = Running(NOW), "abc", True, True
    first = status(containers)
    assert first["phase"] == "Running"
    assert set(by_type(first["conditions"]).values()) == {"True"}
    entry = first["containerStatuses"][0]
    assert (entry["ready"], entry["containerID"]) == (True, "lamina://abc")
    assert entry["state"] == {"running": {"startedAt": STAMP}}
    later = status(containers, before=first["conditions"], now=NOW + 60)
    assert later["conditions"] == first["conditions"]
    app.ready = False
    changed = status(containers, before=first["conditions"], now=NOW + 60)["conditions"]
    times = {entry["type"]: entry["lastTransitionTime"] for entry in changed}
    assert times["Initialized"] == STAMP
    assert times["Ready"] == "1970-01-12T13:47:40Z"


def test_conditions_of_others_are_kept() -> None:
    containers, _, _ = records()
    foreign = {"type": "example.dev/gate", "status": "True"}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "then"}
    pod = POD | {"status": {"conditions": [scheduled, foreign, {"type": "Ready", "status": "True"}]}}
    shown = status(containers, pod)["conditions"]
    assert scheduled in shown
    assert foreign in shown
    assert [entry["status"] for entry in shown if entry["type"] == "Ready"] == ["False"]


@pytest.mark.parametrize(
    ("codes", "policy", "ended", "expected"),
    [
        ((0, 0), "Never", True, "Succeeded"),
        ((0, 1), "Never", True, "Failed"),
        ((0, None), "Never", True, "Failed"),
        ((0, 1), "Always", False, "Running"),
        ((0, None), "OnFailure", False, "Pending"),
    ],
)
def test_phase(codes: tuple[int | None, ...], policy: str, ended: bool, expected: str) -> None:
    containers = containers_of({"containers": [{"name": "a"}, {"name": "b"}]})
    for container, code in zip(containers, codes, strict=True):
        if code is not None:
            container.terminated(Terminated(code, "", NOW))
    assert phase(containers, policy, ended=ended) == expected


def test_crash_looping_pod_is_running() -> None:
    containers = containers_of({"containers": [{"name": "a"}]})
    containers[0].terminated(Terminated(5, "Error", NOW, NOW, container_id="old"))
    containers[0].wait(Waiting("CrashLoopBackOff", "back-off"))
    shown = status(containers)
    assert shown["phase"] == "Running"
    last = shown["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["exitCode"], last["containerID"]) == (5, "lamina://old")


def test_deadline_is_a_failure_only_once_the_pod_has_ended() -> None:
    containers = containers_of({"containers": [{"name": "a"}]})
    containers[0].state, containers[0].container_id = Running(NOW), "id"
    failure = PodFailure("DeadlineExceeded", "too long")
    assert status(containers, failure=failure)["phase"] == "Running"
    containers[0].terminated(Terminated(0, "Completed", NOW))
    shown = status(containers, failure=failure, ended=True)
    assert (shown["phase"], shown["reason"]) == ("Failed", "DeadlineExceeded")


def test_rejected_pod() -> None:
    shown = rejected_status(POD, PodFailure("UnexpectedAdmissionError", "no devices"), NOW)
    assert shown["phase"] == "Failed"
    assert shown["message"] == "Pod was rejected: no devices"
    assert "containerStatuses" not in shown


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_quality_of_service(resources: dict[str, Any], expected: str) -> None:
    assert qos_class({"containers": [{"name": "a", "resources": resources}]}) == expected
