"""Logs and exec over the kubelet's own socket, through the API server's client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from lamina.ports.kube import PODS
from lamina_lab.api.http.kubelets import ExecOptions, KubeletError
from lamina_lab.kubernetes.exec_channels import CLOSE, ERROR, RESIZE, STDERR, STDIN, STDOUT
from tests.lab_kubelet.cluster import NODE, OneKubelet, container, is_running, marked, phase, restarts, waiting
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def pod(shared_cluster: OneKubelet) -> str:
    name = shared_cluster.create(container("echo first; echo second; echo third; sleep 600"))
    shared_cluster.until(name, is_running, "running")
    wait_until(lambda: shared_cluster.log(name).count("\n") == 3, "three lines")
    return name


def test_log_options(shared_cluster: OneKubelet, pod: str) -> None:
    assert shared_cluster.log(pod, tail=2) == "second\nthird\n"
    assert shared_cluster.log(pod, tail=0) == ""
    assert shared_cluster.log(pod, since_seconds=3600).startswith("first\n")
    stamped = shared_cluster.log(pod, timestamps=True).splitlines()
    assert all(line[:2] == "20" and line.split(" ")[0].endswith("Z") for line in stamped)


def test_log_is_followed_to_the_end(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container("for i in 1 2 3 4; do echo $i; sleep 0.2; done"), restartPolicy="Never")
    shared_cluster.until(name, lambda pod: phase(pod) == "Running", "running")
    assert shared_cluster.log(name, follow=True) == "1\n2\n3\n4\n"


def test_previous_log(shared_cluster: OneKubelet, pod: str) -> None:
    with pytest.raises(KubeletError, match=f'previous terminated container "main" in pod "{pod}" not found'):
        shared_cluster.log(pod, previous=True)
    name = shared_cluster.create(container("echo $(basename $PWD); exit 1"))
    shared_cluster.until(name, lambda pod: restarts(pod) == 2, "restarted")
    wait_until(lambda: shared_cluster.log(name) == "2\n", "the log of the third run")
    assert shared_cluster.log(name, previous=True) == "1\n"


def test_refusals(shared_cluster: OneKubelet, pod: str) -> None:
    with pytest.raises(KubeletError, match='pod "missing" not found') as refused:
        shared_cluster.log("missing")
    assert refused.value.status == 404
    with pytest.raises(KubeletError, match=f'container other is not in pod "{pod}"'):
        shared_cluster.log(pod, "other")
    waits = shared_cluster.create(container("true", envFrom=[{"configMapRef": {"name": "never"}}]))
    shared_cluster.until(waits, lambda pod: waiting(pod) == "CreateContainerConfigError", "waiting")
    with pytest.raises(KubeletError, match="waiting to start: CreateContainerConfigError"):
        shared_cluster.log(waits)
    _, _, status = execute(shared_cluster, waits, "true")
    assert status["message"] == 'Internal error occurred: container not found ("main")'


def execute(
    cluster: OneKubelet, pod: str, *command: str, tty: bool = False, sent: list[tuple[int, bytes]] | None = None
) -> tuple[bytes, bytes, dict[str, Any]]:
    """Output, errors and final status of one exec; `sent` are frames to send, to a terminal once it has a prompt."""

    async def session() -> tuple[bytes, bytes, dict[str, Any]]:
        options = ExecOptions(command, tty=tty, stdin=bool(sent))
        found = await cluster.kubelets.exec(NODE, "default", pod, "main", options)
        streams: dict[int, bytes] = {STDOUT: b"", STDERR: b"", ERROR: b""}
        unsent = list(sent or ())
        if not tty:
            for frame in unsent:
                await found.send(*frame)
        async for channel, data in found.frames():
            streams[channel] += data
            while tty and unsent and streams[STDOUT].rstrip().endswith((b"#", b"$")):
                await found.send(*unsent.pop(0))
        return streams[STDOUT], streams[STDERR], json.loads(streams[ERROR])

    return cluster.run(session())


def test_exec_separates_streams_and_reports_the_exit_code(shared_cluster: OneKubelet, pod: str) -> None:
    out, err, status = execute(shared_cluster, pod, "sh", "-c", "echo to-out; echo to-err >&2; exit 7")
    assert (out, err) == (b"to-out\n", b"to-err\n")
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]
    _, _, status = execute(shared_cluster, pod, "true")
    assert status["status"] == "Success"


def test_exec_has_the_containers_environment(shared_cluster: OneKubelet, pod: str) -> None:
    out, _, _ = execute(shared_cluster, pod, "sh", "-c", "echo $HOSTNAME $FROM_NODE $NVIDIA_VISIBLE_DEVICES")
    assert out.decode() == f"{pod} yes void\n"


def test_exec_reads_until_its_input_is_closed(shared_cluster: OneKubelet, pod: str) -> None:
    large = os.urandom(300_000)
    frames = [(STDIN, large[i : i + 30_000]) for i in range(0, len(large), 30_000)]
    out, _, status = execute(shared_cluster, pod, "cat", sent=[*frames, (CLOSE, bytes((STDIN,)))])
    assert out == large
    assert status["status"] == "Success"


def test_exec_of_a_missing_container(shared_cluster: OneKubelet, pod: str) -> None:
    _, _, status = execute(shared_cluster, pod, "nosuch")
    assert status["reason"] == "InternalError"
    assert 'exec: "nosuch": executable file not found in $PATH' in status["message"]


def test_exec_with_a_terminal(shared_cluster: OneKubelet, pod: str) -> None:
    size = json.dumps({"Width": 132, "Height": 43}).encode()
    typed = [(RESIZE, size), (STDIN, b"tty && stty size; echo $TERM; exit 9\r")]
    out, _, status = execute(shared_cluster, pod, "/bin/bash", "--norc", tty=True, sent=typed)
    text = out.decode().replace("\r\n", "\n")
    assert "/dev/pts/" in text
    assert "\n43 132\n" in text
    assert "\nxterm\n" in text
    assert status["details"]["causes"][0]["message"] == "9"


def test_closing_the_input_of_a_terminal_ends_a_shell(shared_cluster: OneKubelet, pod: str) -> None:
    _, _, status = execute(shared_cluster, pod, "bash", "--norc", tty=True, sent=[(CLOSE, bytes((STDIN,)))])
    assert status["status"] == "Success"


def test_hanging_up_ends_the_command(shared_cluster: OneKubelet, pod: str) -> None:
    async def hang_up() -> None:
        options = ExecOptions(("sh", "-c", "echo up; sleep 633"))
        session = await shared_cluster.kubelets.exec(NODE, "default", pod, "main", options)
        async for _ in session.frames():
            break
        await session.close()

    shared_cluster.run(hang_up())
    wait_until(lambda: not commands("sleep\0633"), "the command has ended")


def commands(text: str) -> list[int]:
    """Processes of the lab whose command line holds `text`."""
    found = []
    for pid in marked("LAMINA_NODE="):
        with contextlib.suppress(OSError):
            if text.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_exec_ends_with_its_container(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container("sleep 600"), restartPolicy="Never", terminationGracePeriodSeconds=1)
    shared_cluster.until(name, is_running, "running")

    async def outlive() -> dict[str, Any]:
        session = await shared_cluster.kubelets.exec(NODE, "default", name, "main", ExecOptions(("sleep", "634")))
        last = b""
        await asyncio.to_thread(wait_until, lambda: commands("sleep\000634"), "it runs")
        await shared_cluster.kube.delete(PODS, name, namespace="default", grace_s=1)
        async for channel, data in session.frames():
            last = data if channel == ERROR else last
        found: dict[str, Any] = json.loads(last)
        return found

    assert shared_cluster.run(outlive())["details"]["causes"][0]["message"] == "137"
    shared_cluster.until_gone(name)
