"""MPS clients of several users: one user after the other, or all at the same time. Only root can start them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina_lab.programs.mps_control import MULTI_USER
from tests.simgpu.machines import Machine
from tests.simgpu.mps import Daemon
from tests.waiting import wait_until

pytestmark = pytest.mark.root

STRANGER_ID = 65534
CLIENT = (
    "import os, socket, sys\n"
    "os.chdir(sys.argv[1])\n"
    f"os.setuid({STRANGER_ID})\n"
    "one = socket.socket(socket.AF_UNIX)\n"
    "one.connect('control')\n"
    "one.sendall(b'CLIENT 7 100\\n')\n"
    "print(one.makefile().readline().split()[0], flush=True)\n"
    "sys.stdin.read()\n"
)


class Stranger:
    """What the daemon sees of a client of another user."""

    def __init__(self, daemon: Daemon) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(daemon.pipe)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "machine", "gpus:\n- {model: A100-PCIE-40GB, count: 1}\n")
    yield made
    made.close()


def test_a_client_of_another_user_waits_and_so_do_all_after_it(machine: Machine, tmp_path: Path) -> None:
    daemon = Daemon(machine, tmp_path)
    first, stranger = machine.started(**daemon.env), Stranger(daemon)
    waits = "waits until the server of another user has ended"
    wait_until(lambda: f"Client 7 {waits}" in log(daemon))
    third = machine.process(**daemon.env)
    third.send("start()")
    wait_until(lambda: f"Client {third.pid} {waits}" in log(daemon))
    assert daemon.ask("get_client_list") == [str(first.pid)]

    first.end()
    assert stranger.answer() == "OK"
    assert f"for user {STRANGER_ID}" in log(daemon)
    assert daemon.ask("get_client_list") == ["7"], "the third is not of this user either"
    stranger.end()
    assert third.receive() == 0
    assert log(daemon).count("Starting new server") == 3
    daemon.end()


def test_one_that_ends_while_it_waits_is_forgotten(machine: Machine, tmp_path: Path) -> None:
    daemon = Daemon(machine, tmp_path)
    first, stranger = machine.started(**daemon.env), Stranger(daemon)
    wait_until(lambda: "Client 7 waits" in log(daemon))
    stranger.end()
    wait_until(lambda: "Client 7 disconnected" in log(daemon))
    machine.started(**daemon.env)
    assert first("alloc(1)")[0] == 0
    assert log(daemon).count("Starting new server") == 1
    daemon.end()


def test_with_a_server_for_all_users_none_waits(machine: Machine, tmp_path: Path) -> None:
    daemon = Daemon(machine, tmp_path, "0", MULTI_USER)
    first, stranger = machine.started(**daemon.env), Stranger(daemon)
    assert stranger.answer() == "OK"
    assert daemon.ask("get_client_list") == [str(first.pid), "7"]
    assert len(daemon.ask("get_server_list")) == 1
    stranger.end()
    daemon.end()


def log(daemon: Daemon) -> str:
    return (daemon.log / "control.log").read_text()
