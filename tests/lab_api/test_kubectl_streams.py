"""Logs and exec through a real kubectl, with kubelets that only pretend."""

import os
import pty
import subprocess

import pytest

from lamina_lab.api.http.kubelets import LogOptions
from tests.kubectl import Kubectl
from tests.lab_api.servers import Threaded


def test_logs_come_from_the_kubelet_of_the_pods_node(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    assert kubectl("logs", "a") == "one\ntwo\nthree\n"
    assert lab.kubelets.logged == [("n1", "default", "a", "main", LogOptions())]
    assert kubectl("logs", "a", "--tail=1", "--timestamps", "--since=1m") == "three\n"
    assert lab.kubelets.logged[-1][4] == LogOptions(tail=1, timestamps=True, since_seconds=60)


def test_logs_follow_until_the_kubelet_ends_them(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    following = kubectl.start("logs", "-f", "a")
    assert following.stdout is not None
    assert [following.stdout.readline() for _ in range(3)] == ["one\n", "two\n", "three\n"]
    lab.soon(lab.kubelets.follow_on.set)
    assert following.communicate(timeout=150)[0] == "four\n"
    assert following.returncode == 0


def test_logs_of_one_container_among_several(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a", ("first", "second"))
    kubectl("logs", "a", "-c", "second")
    assert lab.kubelets.logged[-1][3] == "second"
    assert "container nope is not valid for pod a" in kubectl.refused("logs", "a", "-c", "nope")
    raw = kubectl.refused("get", "--raw", "/api/v1/namespaces/default/pods/a/log")
    assert "a container name must be specified for pod a, choose one of: [first second]" in raw


def test_logs_that_cannot_be_there_say_why(lab: Threaded, kubectl: Kubectl) -> None:
    spec = {"containers": [{"name": "main", "image": "busybox"}]}
    lab.create("pods", {"metadata": {"name": "waiting"}, "spec": spec})
    assert "pod waiting does not have a host assigned" in kubectl.refused("logs", "waiting")
    lab.running_pod("a")
    wanted = 'previous terminated container "main" in pod "a" not found'
    assert wanted in kubectl.refused("logs", "a", "--previous")
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    lab.patch(
        "pods", "a", {"status": {"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]}}, "status"
    )
    wanted = 'container "main" in pod "a" is waiting to start: CrashLoopBackOff'
    assert wanted in kubectl.refused("logs", "a")
    lab.running_pod("b", node="broken")
    assert "the kubelet of node broken does not answer" in kubectl.refused("logs", "b")


def test_exec_carries_input_output_and_exit_code(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    assert kubectl("exec", "-i", "a", "--", "cat", stdin="hello\nworld\n") == "hello\nworld\n"
    node, _, pod, container, options = lab.kubelets.ran[-1]
    assert (node, pod, container, options.command, options.stdin) == ("n1", "a", "main", ("cat",), True)
    failed = kubectl.run("exec", "a", "--", "fail", "on standard error")
    assert (failed.returncode, failed.stdout, failed.stderr) == (0, "", "on standard error")
    ended = kubectl.run("exec", "a", "--", "exit", "3")
    assert ended.returncode == 3
    assert "command terminated with exit code 3" in ended.stderr


def test_exec_with_much_input_loses_nothing(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    text = "0123456789abcdef\n" * 60_000
    assert kubectl("exec", "-i", "a", "--", "cat", stdin=text) == text


def test_exec_hangs_up_when_the_client_goes(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    running = kubectl.start("exec", "-i", "a", "--", "cat")
    assert running.stdin is not None and running.stdout is not None
    running.stdin.write("x\n")
    running.stdin.flush()
    assert running.stdout.readline() == "x\n"
    running.kill()
    assert lab.kubelets.closed.wait(10)
    running.communicate()


def test_exec_with_a_terminal_sends_its_size(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    master, slave = pty.openpty()
    os.set_blocking(master, True)
    subprocess.run(["stty", "rows", "40", "cols", "120"], stdin=slave, check=True)
    command = [kubectl.path, "exec", "-it", "a", "--", "size"]
    running = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=kubectl.environment)
    os.close(slave)
    shown = b""
    with pytest.raises(OSError, match="Input/output"):
        while True:
            shown += os.read(master, 4096)
    assert running.wait(10) == 0
    os.close(master)
    assert b'{"Width":120,"Height":40}' in shown
    assert lab.kubelets.ran[-1][4].tty


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (("exec", "none", "--", "cat"), 'pods "none" not found'),
        (("exec", "a", "-c", "nope", "--", "cat"), "container nope is not valid for pod a"),
    ],
)
def test_exec_that_cannot_be_says_why(lab: Threaded, kubectl: Kubectl, command: tuple[str, ...], wanted: str) -> None:
    lab.running_pod("a")
    assert wanted in kubectl.refused(*command)


def test_exec_in_a_completed_pod_is_refused(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    lab.patch("pods", "a", {"status": {"phase": "Succeeded"}}, "status")
    wanted = "cannot exec into a container in a completed pod; current phase is Succeeded"
    assert wanted in kubectl.refused("exec", "a", "--", "cat")
