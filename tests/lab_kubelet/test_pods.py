"""Pods as real processes: phases, restarts, order, grace, probes, environment."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from lamina.ports.kube import CONFIG_MAPS, NODES
from tests.lab_kubelet.cluster import (
    NODE,
    OneKubelet,
    condition,
    container,
    is_running,
    marked,
    phase,
    restarts,
    state,
    waiting,
)
from tests.waiting import wait_until

FOREVER = "sleep 600"


def test_node_registers_with_labels_and_amounts(shared_cluster: OneKubelet) -> None:
    node = shared_cluster.get(NODES, NODE)
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == NODE
    assert node["metadata"]["labels"]["gpu"] == "on"
    assert node["status"]["allocatable"] == {"cpu": "8", "memory": "4194304Ki", "pods": "110"}
    assert condition(node, "Ready") == "True"


def test_pod_runs_and_ends_within_its_grace(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container("trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.05; done"))
    pod = shared_cluster.until(name, is_running, "running")
    assert pod["status"]["containerStatuses"][0]["containerID"].startswith("lamina://")
    assert {entry["type"] for entry in pod["status"]["conditions"]} >= {
        "Initialized",
        "ContainersReady",
        "PodScheduled",
    }
    wait_until(lambda: shared_cluster.log(name) == "up\n", "its log")
    shared_cluster.delete(name)
    shared_cluster.until_gone(name)
    folder = shared_cluster.root / "r" / "pods" / pod["metadata"]["uid"]
    wait_until(lambda: not folder.exists(), "its directory is removed")


def test_what_does_not_end_is_killed_with_all_it_made(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container("trap '' TERM; setsid sleep 601 & sleep 602; sleep 603"))
    shared_cluster.until(name, is_running, "running")
    wait_until(lambda: len(marked(f"HOSTNAME={name}\0")) == 3, "three processes")
    began = time.monotonic()
    shared_cluster.delete(name, grace_s=1)
    shared_cluster.until_gone(name)
    assert 0.9 < time.monotonic() - began < 25, "not the 30 s of a pod that says nothing"
    assert marked(f"HOSTNAME={name}\0") == []


@pytest.mark.parametrize(
    ("policy", "code", "ends"),
    [("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")],
)
def test_pod_that_ends_for_good(shared_cluster: OneKubelet, policy: str, code: int, ends: str) -> None:
    name = shared_cluster.create(container(f"echo said; exit {code}"), restartPolicy=policy)
    pod = shared_cluster.until(name, lambda pod: phase(pod) == ends, ends)
    assert state(pod)["terminated"]["exitCode"] == code
    assert state(pod)["terminated"]["reason"] == ("Error" if code else "Completed")
    assert shared_cluster.log(name) == "said\n"
    shared_cluster.delete(name)
    shared_cluster.until_gone(name)


def test_a_signal_counts_as_in_a_shell(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container("kill -11 $$$$"), restartPolicy="Never")
    pod = shared_cluster.until(name, lambda pod: phase(pod) == "Failed", "failed")
    assert state(pod)["terminated"]["exitCode"] == 139


def test_crash_loop(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container("echo $(cat ../count) >&2; exit 5"))
    pod = shared_cluster.until(name, lambda pod: waiting(pod) == "CrashLoopBackOff", "backing off")
    assert phase(pod) == "Running"
    status = pod["status"]["containerStatuses"][0]
    assert status["restartCount"] >= 1
    assert status["lastState"]["terminated"]["exitCode"] == 5
    assert f"container=main pod={name}_default(" in status["state"]["waiting"]["message"]
    pod = shared_cluster.until(name, lambda pod: restarts(pod) >= 2, "goes on")
    reasons = {event["reason"] for event in shared_cluster.events(name)}
    assert reasons >= {"Created", "Started", "BackOff"}


def test_command_that_is_not_there(shared_cluster: OneKubelet) -> None:
    missing = {"name": "main", "image": "example", "command": ["nosuch"]}
    never = shared_cluster.create(missing, restartPolicy="Never")
    pod = shared_cluster.until(never, lambda pod: phase(pod) == "Failed", "failed")
    end = state(pod)["terminated"]
    assert (end["exitCode"], end["reason"]) == (128, "StartError")
    assert 'exec: "nosuch": executable file not found in $PATH' in end["message"]
    always = shared_cluster.create(missing)
    pod = shared_cluster.until(always, lambda pod: waiting(pod) == "CrashLoopBackOff", "backing off")
    assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"] == "StartError"


def test_a_directory_of_path_that_cannot_be_searched_is_skipped(shared_cluster: OneKubelet, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "echo").write_text("not a program")  # root gets "permission denied" only for a file that is there
    (closed / "nosuch").write_text("not a program")
    closed.chmod(0)
    path = {"name": "PATH", "value": f"{closed}:/usr/bin:/bin"}
    there = {"name": "main", "image": "example", "command": ["echo", "ran"], "env": [path]}
    name = shared_cluster.create(there, restartPolicy="Never")
    shared_cluster.until(name, lambda pod: phase(pod) == "Succeeded", "succeeded")
    assert shared_cluster.log(name) == "ran\n"
    name = shared_cluster.create(there | {"command": ["nosuch"]}, restartPolicy="Never")
    pod = shared_cluster.until(name, lambda pod: phase(pod) == "Failed", "failed")
    assert 'exec: "nosuch": executable file not found in $PATH' in state(pod)["terminated"]["message"]
    closed.chmod(0o755)


def test_without_a_command_the_container_sleeps_and_says_so(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create({"name": "main", "image": "registry.example/app:1"})
    shared_cluster.until(name, is_running, "running")
    wait_until(lambda: [e for e in shared_cluster.events(name) if e["reason"] == "NoCommand"], "its event")


def test_programs_of_the_lab_come_first_also_by_their_path_in_an_image(shared_cluster: OneKubelet) -> None:
    program = shared_cluster.root / "bin" / "tester11"
    program.write_text("#!/bin/sh\necho tested $1\n")
    program.chmod(0o755)
    for command in (["tester11", "a"], ["/usr/bin/tester11", "a"]):
        name = shared_cluster.create({"name": "main", "image": "example", "command": command}, restartPolicy="Never")
        shared_cluster.until(name, lambda pod: phase(pod) == "Succeeded", "succeeded")
        assert shared_cluster.log(name) == "tested a\n"


def test_stdin_and_terminal_of_a_container(shared_cluster: OneKubelet) -> None:
    ends = shared_cluster.create(container("cat; test -t 1 || echo no terminal"), restartPolicy="Never")
    shared_cluster.until(ends, lambda pod: phase(pod) == "Succeeded", "an input that is not wanted is empty")
    assert shared_cluster.log(ends) == "no terminal\n"
    stays = shared_cluster.create(container("test -t 0 && test -t 1 && echo terminal; cat", stdin=True, tty=True))
    shared_cluster.until(stays, is_running, "running")
    wait_until(lambda: "terminal" in shared_cluster.log(stays), "its log")
    held = shared_cluster.create(container("cat", stdin=True), restartPolicy="Never")
    shared_cluster.until(held, is_running, "an input that is wanted stays open")


def test_init_containers_run_in_order_before_the_others(shared_cluster: OneKubelet) -> None:
    inits = [container("sleep 0.2; date +%s%N", name="one"), container("date +%s%N", name="two")]
    name = shared_cluster.create(container("date +%s%N"), initContainers=inits, restartPolicy="Never")
    pod = shared_cluster.until(name, lambda pod: phase(pod) == "Succeeded", "succeeded")
    times = [int(shared_cluster.log(name, part)) for part in ("one", "two", "main")]
    assert times == sorted(times)
    assert condition(pod, "Initialized") == "True"


def test_init_container_that_fails(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(
        container(FOREVER), initContainers=[container("exit 2", name="init")], restartPolicy="Never"
    )
    pod = shared_cluster.until(name, lambda pod: phase(pod) == "Failed", "failed")
    assert waiting(pod) == "PodInitializing"
    assert condition(pod, "Initialized") == "False"


def test_a_sidecar_runs_next_to_the_app_and_ends_after_it(shared_cluster: OneKubelet) -> None:
    side = container("trap 'exit 0' TERM; while :; do sleep 0.05; done", name="side", restartPolicy="Always")
    name = shared_cluster.create(container("sleep 0.3"), initContainers=[side], restartPolicy="Never")
    pod = shared_cluster.until(name, lambda pod: phase(pod) == "Succeeded", "succeeded")
    main, sidecar = state(pod)["terminated"], state(pod, group="initContainerStatuses")["terminated"]
    assert main["finishedAt"] <= sidecar["finishedAt"]


def test_deadline_ends_the_pod(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container(FOREVER), activeDeadlineSeconds=1, terminationGracePeriodSeconds=1)
    pod = shared_cluster.until(name, lambda pod: phase(pod) == "Failed", "failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"


def test_environment(shared_cluster: OneKubelet) -> None:
    settings = {"metadata": {"name": "settings", "namespace": "default"}, "data": {"A": "1", "B": "2"}}
    name = shared_cluster.create(
        container(
            "env",
            env=[
                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "B"}}},
                {"name": "MADE", "value": "$(POD)-$(A)"},
                {"name": "FROM_NODE", "value": "mine"},
            ],
            envFrom=[{"configMapRef": {"name": "settings"}}],
        ),
        restartPolicy="Never",
    )
    pod = shared_cluster.until(
        name, lambda pod: waiting(pod) == "CreateContainerConfigError", "waits for its ConfigMap"
    )
    assert state(pod)["waiting"]["message"] == 'configmap "settings" not found'
    shared_cluster.run(shared_cluster.kube.create(CONFIG_MAPS, settings, namespace="default"))
    pod = shared_cluster.until(name, lambda pod: phase(pod) == "Succeeded", "succeeded")
    shown = dict(line.split("=", 1) for line in shared_cluster.log(name).splitlines())
    assert shown["POD"] == shown["HOSTNAME"] == name
    assert (shown["A"], shown["KEY"], shown["MADE"]) == ("1", "2", f"{name}-1")
    assert shown["IP"] == pod["status"]["podIP"]
    assert (shown["FROM_NODE"], shown["NVIDIA_VISIBLE_DEVICES"]) == ("yes", "void")
    assert shown["PATH"].startswith(f"{shared_cluster.root}/bin:")
    assert "LD_LIBRARY_PATH" not in shown


def test_probes_decide_readiness_and_restarts(shared_cluster: OneKubelet) -> None:
    fast: dict[str, Any] = {"periodSeconds": 1, "failureThreshold": 1}
    ready = {"exec": {"command": ["test", "-e", "ready"]}, **fast}
    alive = {"exec": {"command": ["test", "!", "-e", "dead"]}, **fast}
    name = shared_cluster.create(
        container("sleep 1.5; touch ready; sleep 2; touch dead; sleep 600", readinessProbe=ready, livenessProbe=alive),
        terminationGracePeriodSeconds=1,
    )
    pod = shared_cluster.until(name, lambda pod: phase(pod) == "Running", "running")
    assert condition(pod, "Ready") == "False"
    shared_cluster.until(name, is_running, "ready")
    pod = shared_cluster.until(name, lambda pod: restarts(pod) == 1, "restarted")
    assert [event for event in shared_cluster.events(name) if event["reason"] == "Unhealthy"]


def test_pod_that_vanished_from_the_api_ends_too(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container(FOREVER))
    shared_cluster.until(name, is_running, "running")
    shared_cluster.delete(name, grace_s=0)
    wait_until(lambda: marked(f"HOSTNAME={name}\0") == [], "its processes have ended")
