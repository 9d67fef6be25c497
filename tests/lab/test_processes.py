import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lamina_lab.host import processes
from lamina_lab.host.directory import MARKER


class Started(NamedTuple):
    process: subprocess.Popen[bytes]
    said: bytes


Start = Callable[..., Started]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Run `setup` in a marked process, which then says a line and sleeps."""
    started: list[subprocess.Popen[bytes]] = []

    def run(setup: str = "said = 0", root: Path = tmp_path, *, own_session: bool = False) -> Started:
        process = subprocess.Popen(
            [sys.executable, "-c", f"{setup}\nprint(said, flush=True)\nimport time\ntime.sleep(60)"],
            env=os.environ | {MARKER: str(root)},
            stdout=subprocess.PIPE,
            start_new_session=own_session,
        )
        assert process.stdout is not None
        started.append(process)
        return Started(process, process.stdout.readline())

    yield run
    for process in started:
        process.kill()
        process.wait()


def test_only_processes_with_the_marker_are_found(tmp_path: Path, start: Start) -> None:
    ours = start().process
    other = start(root=tmp_path / "other").process
    found = set(processes.marked(tmp_path))
    assert ours.pid in found
    assert other.pid not in found
    assert os.getpid() not in found


def test_a_process_that_left_its_session_and_ignores_sigterm_is_ended(tmp_path: Path, start: Start) -> None:
    setup = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsaid = 0"
    stubborn = start(setup, own_session=True).process
    assert processes.end_all(tmp_path, grace_s=0.1) == 1
    assert stubborn.wait(5) == -9


def test_those_to_be_spared_are_spared(tmp_path: Path, start: Start) -> None:
    spared = start().process
    processes.end_all(tmp_path, grace_s=0.0, spare=frozenset({spared.pid}))
    assert spared.poll() is None


def test_ending_a_lab_without_processes_ends_none(tmp_path: Path) -> None:
    assert processes.end_all(tmp_path, grace_s=1.0) == 0


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path, start: Start) -> None:
    parent, said = start(
        "import subprocess\nfrom lamina_lab.host.processes import die_with_parent\n"
        "said = subprocess.Popen(['sleep', '60'], preexec_fn=die_with_parent).pid"
    )
    child = int(said)
    assert processes.carries(tmp_path, child)
    handle = os.pidfd_open(child)
    parent.kill()
    parent.wait()
    select.select([handle], [], [], 60)
    os.close(handle)
    assert not processes.carries(tmp_path, child)


def test_all_variables_have_to_be_there(tmp_path: Path, start: Start) -> None:
    found = start().process
    marker = {MARKER: str(tmp_path)}
    assert found.pid in set(processes.carrying(marker | {"PATH": os.environ["PATH"]}))
    assert found.pid not in set(processes.carrying(marker | {"PATH": "elsewhere"}))
    assert found.pid not in set(processes.carrying(marker | {"NOBODY_HAS_THIS": ""}))
