"""The limits of all runs on a GPU together: what exceeds it is said, and `lamina gpus` counts it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.core.quantities import MemoryAmount, parse_gpu_memory
from lamina.enforcement.run_machine import find_machine
from lamina.enforcement.runs import own_folders
from lamina.errors import BadInput
from tests.worlds.runs import holding, machine_of, private_folder, running

T4 = ("--simulate", "T4")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return private_folder(tmp_path, monkeypatch)


def gpus(*options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(CliRunner().invoke(app, ["gpus", "-o", "json", *options]).stdout)
    return rows


def warning_of(*options: str) -> str:
    """What one more run says, whose command does nothing."""
    command = [sys.executable, "-m", "lamina", "run", *options, "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stderr


@pytest.mark.parametrize(
    ("memory", "total"),
    [("5Gi", 0), ("5120Mi", 0), ("5121Mi", 15361), ("10Gi", 20480), ("100%", 25600), ("33.33%", 0), ("33.34%", 15361)],
)
def test_limits_of_more_than_the_gpu_are_named_with_their_amounts(memory: str, total: int) -> None:
    with running("--memory", "10Gi", *T4):
        said = warning_of("--memory", memory, *T4)
        if not total:
            assert said == ""
            return
        assert said.startswith(f"Warning: the limits of 2 runs on GPU 0 (Tesla T4) are {total} MiB together, and it ")
        assert "has 15360 MiB: 10240 of run " in said and f", {total - 10240} of run " in said
        assert len(said.splitlines()) == 1


def test_ps_and_gpus_say_the_same_as_the_run() -> None:
    with running("--memory", "10Gi", *T4), running("--memory", "10Gi", *T4):
        of_ps, of_gpus = CliRunner().invoke(app, ["ps"]).stderr, CliRunner().invoke(app, ["gpus"]).stderr
        assert of_ps == of_gpus and "are 20480 MiB together" in of_ps
    assert CliRunner().invoke(app, ["ps"]).stderr == ""


def test_gpus_have_what_is_granted_used_and_free() -> None:
    with running("--memory", "10Gi", "--cores", "30", *T4, command=holding(600)), running("--memory", "25%", *T4):
        (row,) = gpus()
        assert (row["memoryMib"], row["memoryGrantedMib"], row["memoryFreeMib"]) == (15360, 10240 + 3840, 1280)
        assert 600 <= row["memoryUsedMib"] < 1000
        assert (row["computeGrantedPercent"], row["computeMeaning"]) == (30, "cap")
        assert (row["slots"], row["slotsFree"], row["mode"], len(row["pods"])) == (None, None, "quota", 2)


def test_a_machine_with_a_driver_lists_its_gpus_and_simulated_ones(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuids = machine_of(folder, monkeypatch, "A10", "A10")
    with running("--memory", "1Gi", "--gpu", "1"), running("--memory", "1Gi", *T4):
        rows = {row["gpu"]: row for row in gpus()}
        own, (simulated,) = [rows.pop(uuid) for uuid in uuids], rows.values()
        assert [row["memoryGrantedMib"] for row in own] == [0, 1024]
        assert [row["mode"] for row in own] == ["idle", "quota"]
        assert (simulated["model"], simulated["memoryGrantedMib"]) == ("Tesla T4", 1024)
        assert "RUNS" in CliRunner().invoke(app, ["gpus"]).output


def test_one_simulated_machine_is_shared_while_runs_have_it() -> None:
    with running("--memory", "1Gi", *T4):
        (first,) = gpus()
        with running("--memory", "1Gi", "--simulate", "tesla t4@13.0"):
            assert [row["gpu"] for row in gpus()] == [first["gpu"]], "the same model by another name"
            with running("--memory", "1Gi", "--simulate", "T4@12.4"), running("--memory", "1Gi", "--simulate", "2xT4"):
                assert len(gpus()) == 4, "another driver, and two GPUs"
    assert own_folders() == []


def test_memory_that_another_run_holds_is_not_there() -> None:
    with running("--memory", "10Gi", *T4, command=holding(9000)):
        command = [sys.executable, "-c", holding()[2].replace("sys.stdin.read()", ""), "4000", "4000"]
        line = [sys.executable, "-m", "lamina", "run", "--memory", "10Gi", *T4, "--", *command]
        assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == "0 2\n"


def test_a_run_that_joins_outlives_the_one_that_made_the_machine(folder: Path) -> None:
    first, second, third = (folder / f"lamina-run-0-{n}" for n in "abc")
    for each in (first, second, third):
        each.mkdir()
    made = find_machine(first, "", "T4", lambda: [first]).gpu
    assert find_machine(second, "", "T4", lambda: [first, second]).gpu == made
    (first / "machine").unlink()
    assert find_machine(third, "", "T4", lambda: [first, second, third]).gpu == made


@pytest.mark.parametrize(("text", "mib"), [
    ("25%", 3840), ("100%", 15360), ("12.5%", 1920), ("0.01%", 1), ("033%", 5068), (" 25% ", 3840),
    ("5Gi", 5120), ("5120", 5120), ("1Mi", 1),
])  # fmt: skip
def test_parts_of_a_gpu_are_amounts_or_percentages(text: str, mib: int) -> None:
    assert parse_gpu_memory(text, where="--memory").of(15360, where="--memory") == mib


@pytest.mark.parametrize(
    "text",
    ["0%", "0.0%", "101%", "100.1%", "-5%", "%", "25%%", "1e1%", "25 %", "x%", "NaN%", "1_0%", ".5%", "5.%"],
)
def test_other_percentages_are_one_sentence(text: str) -> None:
    with pytest.raises(BadInput, match=r"^--memory must be a percentage over 0% and up to 100%, such as 25% or 12\.5%"):
        parse_gpu_memory(text, where="--memory")


def test_less_than_a_mib_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^--memory is less than 1 MiB of the 15360 MiB"):
        parse_gpu_memory("0.001%", where="--memory").of(15360, where="--memory")
    assert MemoryAmount(mib=7).of(1, where="") == 7


@pytest.mark.parametrize("command", ["gpus", "doctor"])
def test_a_cluster_that_is_named_is_never_replaced_by_this_machine(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_of(folder, monkeypatch, "T4")
    named = CliRunner().invoke(app, [command, "--kubeconfig", "/nowhere"])
    assert named.exception is not None and "kubeconfig /nowhere cannot be used" in str(named.exception)
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert "kubeconfig /nowhere cannot be used" in str(CliRunner().invoke(app, [command]).exception)
    local = CliRunner().invoke(app, [command, "--local"])
    assert local.output.splitlines()[-1].startswith("This is machine ") and "because" not in local.output
    both = CliRunner().invoke(app, [command, "--local", "--kubeconfig", "/nowhere"])
    assert "leave out one of them" in str(both.exception)
    monkeypatch.delenv("KUBECONFIG")
    assert "because there is no kubeconfig" in CliRunner().invoke(app, [command]).output
    (folder / ".kube").mkdir()
    (folder / ".kube/config").write_text("{")
    assert "config" in str(CliRunner().invoke(app, [command]).exception), "one that is there, and broken"


@pytest.mark.parametrize("command", ["gpus", "doctor"])
def test_without_a_cluster_and_without_a_gpu_both_are_named(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.enforcement.driver._cached", lambda: iter(()))
    monkeypatch.setattr("lamina.enforcement.driver._DIRECTORIES", ())
    said = str(CliRunner().invoke(app, [command]).exception)
    assert "kubeconfig" in said and "no NVIDIA driver" in said and len(said.splitlines()) == 1


def test_nodes_and_labels_are_of_a_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine_of(folder, monkeypatch, "T4")
    for options in (("--node", "n"), ("-l", "a=b")):
        assert "kubeconfig" in str(CliRunner().invoke(app, ["gpus", *options]).exception)
        assert "leave out --node" in str(CliRunner().invoke(app, ["gpus", "--local", *options]).exception)


def findings(*options: str) -> dict[str, str]:
    output = CliRunner().invoke(app, ["doctor", "--local", "-o", "json", *options]).stdout
    return {row["check"]: row["state"] for row in json.loads(output)}


def test_doctor_looks_at_driver_gpus_limits_and_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.enforcement.driver._cached", lambda: iter(()))
    monkeypatch.setattr("lamina.enforcement.driver._DIRECTORIES", ())
    assert findings() == {"driver": "failed", "runs": "ok"}
    machine_of(folder, monkeypatch, "T4")
    assert findings() == {"GPUs": "ok", "driver": "ok", "limits": "ok", "runs": "ok"}
    with running("--memory", "10Gi"), running("--memory", "10Gi"):
        assert findings()["runs"] == "warning"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert findings()["limits"] == "failed"


def test_doctor_finds_a_limit_that_is_not_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lamina.operations.verify.machine import Site

    machine_of(folder, monkeypatch, "T4")
    monkeypatch.setattr(Site, "held", lambda self, *_, **__: self.free())
    assert findings()["limits"] == "failed"
