"""`lamina ps`: the runs of this machine, what they may hold and what they hold."""

import fcntl
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.enforcement.runs import RECORD, runs
from tests.waiting import wait_until
from tests.worlds.runs import holding, private_folder, running

T4 = ("--simulate", "T4")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return private_folder(tmp_path, monkeypatch)


def listed(*options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(CliRunner().invoke(app, ["ps", "-o", "json", *options]).stdout)
    return rows


def printed(*options: str) -> str:
    return CliRunner().invoke(app, ["ps", *options]).output


def test_a_run_is_listed_with_its_limit_use_peak_and_refusals() -> None:
    with running("--memory", "1000Mi", "--cores", "30", *T4, command=holding(100, 600, 500)) as process:
        (row,) = listed()
        assert (row["status"], row["pid"], row["reason"]) == ("Running", process.pid, "")
        assert (row["memoryMib"], row["refusals"]) == (1000, 1)
        assert 700 <= row["usedMib"] == row["peakMib"] <= 1000
        assert (row["computePercent"], row["computeMeaning"]) == (30, "cap")
        assert (row["index"], row["model"]) == (0, "Tesla T4")
        assert [each["usedMib"] for each in row["processes"]] == [row["usedMib"]]
        assert row["command"].endswith(" 100 600 500")
    assert listed() == []


@pytest.mark.parametrize(
    ("options", "compute"),
    [((), "shared"), (("--cores", "30"), "30 %, cap"), (("--cores", "30", "--policy", "weight"), "30 %, lends")],
)
def test_the_table_says_what_compute_means(options: tuple[str, ...], compute: str) -> None:
    with running("--memory", "1Gi", *options, *T4):
        head, row = printed().splitlines()
        assert head.split()[-2:] == ["COMPUTE", "COMMAND"]
        assert f" {compute} " in row and " 1024 MiB " in row


def test_what_ended_processes_held_is_not_counted() -> None:
    """A killed process cannot give back what it holds by itself, and there may be no other one that does."""
    script = f'{holding(500)[0]} -c "$0" 500 </dev/null >/dev/null & wait; echo; cat'
    killing = holding(500)[2].replace("sys.stdin.read()", "import os; os.kill(os.getpid(), 9)")
    with running("--memory", "1000Mi", *T4, command=["sh", "-c", script, killing]):
        (row,) = listed()
        assert (row["usedMib"], row["processes"]) == (0, [])
        assert row["peakMib"] >= 500


def test_names_are_those_of_the_runs() -> None:
    with running("--memory", "1Gi", *T4), running("--memory", "2Gi", *T4):
        assert printed("-o", "name").split() == [row["run"] for row in listed()]
        assert [row["memoryMib"] for row in listed("--sort-by", "memoryMib")] == [1024, 2048]


def test_a_machine_without_runs_says_so() -> None:
    assert printed() == "No `lamina run` runs on this machine.\n"


def test_characters_of_a_command_cannot_change_the_terminal() -> None:
    with running("--memory", "1Gi", *T4, command=["sh", "-c", "echo; cat # [red]\x1b[2J"]):
        assert "\x1b" not in printed() and "[red]" in printed()


def test_a_long_command_keeps_its_ends() -> None:
    filler = "x" * 100
    with running("--memory", "1Gi", *T4, command=["sh", "-c", f"echo; cat # {filler} train.py"]):
        assert filler not in printed() and "sh -c 'echo" in printed() and "~" in printed() and "train.py'" in printed()
        assert filler in printed("-o", "wide")


def test_runs_on_other_machines_do_not_count_on_this_gpu() -> None:
    with running("--memory", "10Gi", *T4), running("--memory", "10Gi", "--simulate", "A10"):
        assert len({row["gpu"] for row in listed()}) == 2
        assert "Warning" not in CliRunner().invoke(app, ["ps"]).output


def kill(folder: Path, pid: int) -> None:
    """End a run and the guard that would clean up behind it, before that can."""
    guards = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and _guards(entry, folder)]
    for guard in guards:
        os.kill(int(guard.name), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)


def _guards(entry: Path, folder: Path) -> bool:
    try:
        words = (entry / "cmdline").read_bytes()
    except OSError:
        return False
    return b"run_reaper.py" in words and os.fsencode(folder) in words


def test_a_run_that_could_not_clean_up_is_ended_and_says_what_is_left(folder: Path) -> None:
    with running("--memory", "1000Mi", *T4, command=holding(100)) as process:
        kill(folder, process.pid)
        wait_until(lambda: listed()[0]["status"] == "Ended", "it still runs")
        (row,) = listed()
        (left,) = [each["pid"] for each in row["processes"]]
        assert f"processes of it go on: {left};" in row["reason"] and row["usedMib"] >= 100
        os.kill(left, signal.SIGKILL)
        wait_until(lambda: not listed()[0]["processes"], "its process stays")
    (row,) = listed()
    assert row["reason"] == f"lamina run was killed, and could not clean up; remove {runs()[0].folder}"
    assert row["reason"] in printed()
    shutil.rmtree(runs()[0].folder)
    assert listed() == []


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        (RECORD, b"{", "truncated"),
        (RECORD, b"{}", "pid"),
        (RECORD, b"\xff" * 100_000, "JSON|invalid|malformed"),
        ("limits", b"x", "limits file"),
        ("usage", b"x", "usage file"),
    ],
)
def test_files_that_are_not_sound_are_one_sentence(file: str, content: bytes, why: str, folder: Path) -> None:
    with running("--memory", "1Gi", *T4), running("--memory", "2Gi", *T4):
        (broken, sound) = [run.folder for run in runs()]
        (broken / file).unlink()
        (broken / file).write_bytes(content)
        rows = {row["run"]: row for row in listed()}
        bad, good = rows[broken.name.rpartition("-")[2]], rows[sound.name.rpartition("-")[2]]
        assert (bad["status"], bad["memoryMib"], good["memoryMib"]) == ("Unreadable", None, 2048)
        assert str(broken) in bad["reason"] and len(bad["reason"].splitlines()) == 1
        assert "1 run of " in CliRunner().invoke(app, ["ps"]).output, "what is not counted is said"


@pytest.mark.parametrize("name", [RECORD, "limits", "usage"])
def test_links_are_not_followed(name: str, folder: Path) -> None:
    with running("--memory", "1Gi", *T4):
        (run,) = runs()
        (run.folder / name).rename(run.folder / "elsewhere")
        (run.folder / name).symlink_to(run.folder / "elsewhere")
        assert [row["status"] for row in listed()] == ["Unreadable"]


@pytest.mark.root
def test_a_run_of_another_user_is_read_and_its_driver_is_not_loaded(folder: Path) -> None:
    with running("--memory", "1Gi", *T4):
        (run,) = runs()
        theirs = folder / "lamina-run-4242-abc"
        shutil.copytree(run.folder, theirs)
        with (theirs / RECORD).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for path in (theirs, *theirs.iterdir()):
                os.chown(path, 4242, 4242)
            (row,) = [row for row in listed() if row["run"] == "abc"]
            assert (row["user"], row["status"], row["memoryMib"]) == ("4242", "Running", 1024)
            assert [each.own for each in runs() if each.name == "abc"] == [False]
        shutil.rmtree(theirs)


def test_a_folder_that_may_not_be_read_is_listed_with_its_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, most: int) -> bytes:
        raise PermissionError(13, "Permission denied")

    with running("--memory", "1Gi", *T4):
        monkeypatch.setattr("lamina.enforcement.runs.read_file", refuse)
        (row,) = listed()
        assert row["status"] == "Unreadable" and row["reason"].endswith("cannot be read: Permission denied")
