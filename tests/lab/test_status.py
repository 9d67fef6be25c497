from pathlib import Path

import pytest

from lamina_lab.host import status
from lamina_lab.host.directory import LabDirectory
from lamina_lab.host.status import Phase, Status


@pytest.fixture
def lab(tmp_path: Path) -> LabDirectory:
    return LabDirectory(tmp_path)


@pytest.mark.parametrize("phase", list(Phase))
def test_a_status_is_read_as_it_was_written(lab: LabDirectory, phase: Phase) -> None:
    account = Status(phase=phase, message="the controller", pid=7, url="https://127.0.0.1:1")
    status.write(lab, account)
    assert status.read(lab) == account


@pytest.mark.parametrize("text", [None, "", "{", '{"phase": "odd"}', "[]"])
def test_an_unreadable_status_is_none(lab: LabDirectory, text: str | None) -> None:
    if text is not None:
        lab.status.write_text(text)
    assert status.read(lab) is None


def test_a_lab_runs_while_its_lock_is_held_and_no_longer(lab: LabDirectory) -> None:
    assert not status.is_running(lab)
    with status.lock(lab) as first:
        assert first
        assert status.is_running(lab)
        with status.lock(lab) as second:
            assert not second
    assert not status.is_running(lab)
    assert not status.is_running(LabDirectory(lab.root / "none"))


def test_a_supervisor_waits_while_another_process_checks_the_lock(
    lab: LabDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    checking = status.lock(lab)
    assert checking.__enter__()
    monkeypatch.setattr(status.time, "sleep", lambda seconds: checking.__exit__(None, None, None))
    with status.lock(lab, timeout_s=60.0) as acquired:
        assert acquired
