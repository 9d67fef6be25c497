import threading
import time
from pathlib import Path

import pytest

from lamina.lab import status
from lamina.lab.directory import LabDirectory
from lamina.lab.status import Phase, Status


@pytest.fixture
def lab(tmp_path: Path) -> LabDirectory:
    return LabDirectory(tmp_path)


@pytest.mark.parametrize("phase", list(Phase))
def test_an_account_is_read_as_it_was_written(lab: LabDirectory, phase: Phase) -> None:
    account = Status(phase=phase, message="the control part", pid=7, url="https://127.0.0.1:1")
    status.write(lab, account)
    assert status.read(lab) == account


@pytest.mark.parametrize("text", [None, "", "{", '{"phase": "odd"}', "[]"])
def test_what_is_no_account_is_none(lab: LabDirectory, text: str | None) -> None:
    if text is not None:
        lab.status.write_text(text)
    assert status.read(lab) is None


def test_a_lab_runs_while_its_lock_is_held_and_no_longer(lab: LabDirectory) -> None:
    assert not status.is_running(lab)
    with status.running(lab) as first:
        assert first
        assert status.is_running(lab)
        with status.running(lab) as second:
            assert not second
    assert not status.is_running(lab)
    assert not status.is_running(LabDirectory(lab.root / "none"))


def test_a_supervisor_waits_for_somebody_who_only_looks(lab: LabDirectory) -> None:
    looking = threading.Event()

    def look() -> None:
        with status.running(lab):
            looking.set()
            time.sleep(0.1)

    looker = threading.Thread(target=look)
    looker.start()
    looking.wait()
    with status.running(lab, patience_s=60.0) as ours:
        assert ours
    looker.join()
