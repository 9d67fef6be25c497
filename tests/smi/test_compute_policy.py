"""S3.7: nvidia-smi compute-policy reads and changes the length of turns on the simulated GPUs."""

import sys

import pytest

from tests import seeds
from tests.simgpu.machines import Machine


def smi(machine: Machine, *arguments: str, code: int = 0, **env: str) -> str:
    done = machine.run(sys.executable, "-m", "lamina_lab.smi", *arguments, **env)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def slices(machine: Machine) -> list[str]:
    listed = smi(machine, "compute-policy", "--list").splitlines()
    assert len({len(line) for line in listed}) == 1
    return [line.split()[3] for line in listed if "Timeslice" in line]


def test_s3_7_a_slice_is_set_for_all_gpus_or_for_one(machine: Machine) -> None:
    assert slices(machine) == ["Default", "Default"]
    smi(machine, "compute-policy", "--set-timeslice=3")
    assert slices(machine) == ["Long", "Long"]
    output = smi(machine, "compute-policy", "-i", machine.state().gpus[1].uuid, "--set-timeslice", "1")
    assert "Set timeslice to SHORT for GPU 00000000:D8:00.0" in output or "AF" in output
    assert slices(machine) == ["Long", "Short"]
    smi(machine, "compute-policy", "--set-timeslice", "0")
    assert slices(machine) == ["Default", "Default"]


def test_a_container_may_not_change_it(machine: Machine) -> None:
    uuid = machine.state().gpus[0].uuid
    output = smi(machine, "compute-policy", "--set-timeslice=1", code=6, NVIDIA_VISIBLE_DEVICES=uuid)
    assert "Insufficient Permissions" in output
    assert slices(machine) == ["Default", "Default"]


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_s3_d_its_help_is_that_of_the_document(machine: Machine, option: str) -> None:
    printed = smi(machine, "compute-policy", option)
    assert "[ | --set-timeslice]: Set timeslice config for a GPU:" in printed
    document = seeds.seed("003")
    start = document.index("    Compute Policy -- Control")
    assert printed.strip("\n") == document[start : document.index("```", start)].strip("\n")


@pytest.mark.parametrize(
    "wrong",
    [["compute-policy"], ["compute-policy", "--set-timeslice=4"], ["--set-timeslice=1"], ["-l"], ["mig", "--list"]],
    ids=" ".join,
)
def test_an_invalid_policy_is_refused(machine: Machine, wrong: list[str]) -> None:
    smi(machine, *wrong, code=2)
    assert slices(machine) == ["Default", "Default"]
