"""`lamina load`: what a program got of a limit, without another program."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from tests.worlds.runs import machine_of, private_folder


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    private_folder(tmp_path, monkeypatch)
    machine_of(tmp_path, monkeypatch, "RTX-4090")
    return tmp_path


def load(*options: str, limits: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, "-m", "lamina"]
    command = [*program, "load", *options]
    if limits:
        command = [*program, "run", *limits, "--", *command]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_says_what_there_is_what_it_holds_and_its_share_of_the_time() -> None:
    done = load("--memory", "300Mi", "--seconds", "0.3", "--kernel-ms", "2", limits=("--memory", "1000Mi"))
    total, holds, share = done.stdout.splitlines()
    assert re.fullmatch(r"GPU 0: 1000 MiB in all, \d+ MiB free", total)
    assert holds == "GPU 0: holds 300 MiB"
    assert re.fullmatch(r"GPU 0: [\d.]+ % of 0\.[3-9] s \(\d+ kernels of 2 ms\)", share)
    assert done.returncode == 0


def test_beyond_the_limit_it_says_how_much_it_got_and_ends_with_1() -> None:
    done = load("--memory", "2Gi", limits=("--memory", "1000Mi"))
    got = re.search(r"^GPU 0: it got (\d+) MiB; cuMemAlloc_v2 failed with error 2: out of memory$", done.stderr, re.M)
    assert got is not None and 500 < int(got[1]) < 1000 and done.returncode == 1


def test_a_percentage_is_of_what_the_program_sees() -> None:
    assert "holds 500 MiB" in load("--memory", "50%", "--seconds", "0", limits=("--memory", "1000Mi")).stdout
    assert "holds 2456 MiB" in load("--memory", "10%", "--seconds", "0").stdout


def test_only_the_gpu_of_the_run_is_there() -> None:
    done = load("--gpu", "1", limits=("--memory", "1000Mi"))
    assert done.returncode == 1 and "cuDevicePrimaryCtxRetain failed with error 101" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--memory", "0"), ("--memory", "200%"), ("--memory", "x"), ("--seconds", "-1"), ("--seconds", "nan"),
        ("--kernel-ms", "0"), ("--kernel-ms", "inf"), ("--every", "-1"), ("--seconds", "1e9"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_amounts_are_one_sentence(options: tuple[str, ...]) -> None:
    error = CliRunner().invoke(app, ["load", *options]).exception
    assert str(error).startswith(f"{options[0]} must be ") and len(str(error).splitlines()) == 1


def test_a_machine_without_a_driver_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH")
    done = load()
    assert done.returncode == 1 and done.stderr.startswith("GPU 0: cannot load the driver: ")
    assert len(done.stderr.splitlines()) == 1
