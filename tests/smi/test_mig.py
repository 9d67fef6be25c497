"""S2.4, S2.6: nvidia-smi about MIG, line by line as the real one prints it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simgpu.machines import Machine
from tests.simgpu.mig_scripts import A100, PARTITION, TWO_HALVES, script

INSTANCES = """\
+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 3g.20gb          9        1          4:4     |
+-------------------------------------------------------+
|   0  MIG 3g.20gb          9        2          0:4     |
+-------------------------------------------------------+
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "machine", A100)
    yield made
    made.close()


def smi(machine: Machine, *arguments: str, code: int = 0, **env: str) -> str:
    done = machine.run(sys.executable, "-m", "lamina_lab.smi", *arguments, **env)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_instances_are_listed_as_in_the_post(machine: Machine) -> None:
    assert smi(machine, "mig", "-lgi", code=6) == "No MIG-enabled devices found.\n"
    script(machine, PARTITION, "[]")
    assert smi(machine, "mig", "-lgi", code=6) == "No GPU instances found: Not Found\n"
    script(machine, PARTITION, TWO_HALVES)
    assert smi(machine, "mig", "-lgi") == INSTANCES
    computes = [line for line in smi(machine, "mig", "-lci").splitlines() if "MIG" in line]
    assert [line.split() for line in computes] == [
        ["|", "0", gi, "MIG", "3g.20gb", "2", "0", "0:3", "|"] for gi in ("2", "1")
    ]


def test_profiles_are_listed_with_what_is_free(machine: Machine) -> None:
    script(machine, PARTITION, json.dumps([[9, 2, 4, 4]]))
    reported = smi(machine, "mig", "-lgip")
    assert {len(line) for line in reported.splitlines()} == {79}
    rows = [line.split()[3:6] for line in reported.splitlines() if "MIG" in line]
    assert rows == [
        ["1g.5gb", "19", "4/7"], ["2g.10gb", "14", "2/3"], ["3g.20gb", "9", "1/2"], ["4g.20gb", "5", "1/1"],
        ["7g.40gb", "0", "0/1"], ["1g.5gb+me", "20", "1/1"], ["1g.10gb", "15", "2/4"],
    ]  # fmt: skip


def test_a_container_lists_its_gpu_and_its_one_device(machine: Machine) -> None:
    (_, _), (second, _) = script(machine, PARTITION, TWO_HALVES)
    gpu = machine.state().gpus[0].uuid
    assert smi(machine, "-L", NVIDIA_VISIBLE_DEVICES=second) == (
        f"GPU 0: NVIDIA A100-SXM4-40GB (UUID: {gpu})\n  MIG 3g.20gb     Device  0: (UUID: {second})\n"
    )


def test_the_table_shows_devices_and_who_uses_them(machine: Machine) -> None:
    (_, _), (second, _) = script(machine, PARTITION, TWO_HALVES)
    user = machine.started(CUDA_VISIBLE_DEVICES=second)
    assert user("alloc(1000)")[0] == 0
    lines = smi(machine).splitlines()
    assert {len(line) for line in lines if line.startswith(("|", "+"))} == {79}
    assert any(line.startswith("|  0    1   0   1  |   1412MiB / 19968MiB | 42") for line in lines)
    assert any(line.split()[:5] == ["|", "0", "1", "0", str(user.pid)] for line in lines)


def test_the_mode_is_switched(machine: Machine) -> None:
    assert "Enabled MIG Mode for GPU" in smi(machine, "-mig", "1", "-i", "0")
    modes = smi(machine, "--query-gpu=mig.mode.current", "--format=csv,noheader")
    assert modes == "Enabled\nDisabled\n"
    for wrong in (["-mig", "2"], ["mig"], ["-lgi"], ["mig", "-L"]):
        smi(machine, *wrong, code=2)
