"""Who a process is in its own PID namespace, from what the kernel says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.ports.host import LinuxHost, ProcessIdentity, parse_identity

STATUS = "Name:\tpython3\nPid:\t90417\nNSpid:\t{}\n"
STAT = "90417 ({}) S 1 90417 90417 0 -1 4194560 4 0 0 0 1 2 0 0 20 0 8 0 5120 3084288 389 18446744073709551615\n"


@pytest.mark.parametrize(("pids", "own"), [("90417", 90417), ("90417\t7", 7), ("90417\t7\t1", 1)])
@pytest.mark.parametrize("name", ["python3", "a) b (c", "S 1 2 3", ""])
def test_a_process_is_known_by_its_innermost_pid_and_its_start(pids: str, own: int, name: str) -> None:
    assert parse_identity(STATUS.format(pids), STAT.format(name)) == ProcessIdentity(own, 5120)


@pytest.mark.parametrize(
    ("status", "stat"),
    [
        ("", STAT.format("p")),
        (STATUS.format("7"), ""),
        (STATUS.format(""), STAT.format("p")),
        (STATUS.format("x"), STAT.format("p")),
        ("Name:\tNSpid:\t7\n", STAT.format("p")),
        (STATUS.format("7"), "7 (p) S 1 2"),
        (STATUS.format("7"), STAT.format("p").replace(" 5120 ", " x ")),
    ],
)
def test_what_the_kernel_does_not_say_is_unknown(status: str, stat: str) -> None:
    assert parse_identity(status, stat) is None


def test_a_process_of_this_machine() -> None:
    host = LinuxHost()
    own = host.process_identity(os.getpid())
    assert own is not None and own.pid == os.getpid()
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert own.start == int(stat[19])
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert host.process_identity(ended.pid) is None
