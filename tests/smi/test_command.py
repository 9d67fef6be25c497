"""nvidia-smi as people call it, on a simulated machine."""

import sys

import pytest

from lamina_lab.smi import main
from tests.simgpu.machines import Machine


def smi(machine: Machine, *arguments: str, **env: str) -> tuple[int, list[str]]:
    done = machine.run(sys.executable, "-m", "lamina_lab.smi", *arguments, **env)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_the_default_is_the_table(machine: Machine) -> None:
    code, lines = smi(machine)
    assert code == 0
    assert lines[8:11] == [
        "|   0  Tesla V100-PCIE...  On   | 00000000:D8:00.0 Off |                    0 |",
        "| N/A   37C    P0    25W / 250W |      0MiB / 32768MiB |      0%      Default |",
        "|                               |                      |                  N/A |",
    ]
    assert lines[12:15] == [
        "|   1  NVIDIA A100-SXM...  On   | 00000000:AF:00.0 Off |                    0 |",
        "| N/A   30C    P0    45W / 400W |      0MiB / 40960MiB |      0%      Default |",
        "|                               |                      |             Disabled |",
    ]


def test_processes_and_their_memory(machine: Machine) -> None:
    process = machine.started(CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert process("alloc(1000)")[0] == 0
    _, lines = smi(machine)
    assert "|   1303MiB / 32768MiB |" in lines[9]
    assert any(f" {process.pid} " in line and line.endswith("1303MiB |") for line in lines)
    _, rows = smi(machine, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
    assert rows == [f"{process.pid}, 1303"]


def test_list(machine: Machine) -> None:
    uuid = machine.state().gpus[1].uuid
    expected = [
        "GPU 0: Tesla V100-PCIE-32GB (UUID: GPU-fcda056f-77c6-7fdf-f7c7-6453511eaaa1)",
        f"GPU 1: NVIDIA A100-SXM4-40GB (UUID: {uuid})",
    ]
    assert smi(machine, "-L") == (0, expected)
    assert smi(machine, "--list-gpus", "-i", "1") == (0, expected[1:])
    assert smi(machine, "-L", f"--id={uuid}") == (0, expected[1:])
    assert smi(machine, "-L", "-i", "00000000:d8:00.0,1") == (0, expected)


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("csv", ["name, memory.total [MiB], utilization.gpu [%]", "NVIDIA A100-SXM4-40GB, 40960 MiB, 0 %"]),
        ("csv,noheader", ["NVIDIA A100-SXM4-40GB, 40960 MiB, 0 %"]),
        ("csv,noheader,nounits", ["NVIDIA A100-SXM4-40GB, 40960, 0"]),
    ],
)
def test_query(machine: Machine, format: str, expected: list[str]) -> None:
    fields = "--query-gpu=name,memory.total,utilization.gpu"
    assert smi(machine, fields, f"--format={format}", "-i", "1") == (0, expected)


def test_every_field_can_be_queried(machine: Machine) -> None:
    from lamina_lab.smi.query import _GPU_FIELDS, _OTHER_NAMES

    names = [*_GPU_FIELDS, *_OTHER_NAMES]
    code, rows = smi(machine, "--query-gpu=" + ",".join(names), "--format=csv,noheader")
    assert code == 0
    assert [len(row.split(", ")) for row in rows] == [len(names)] * 2


def test_log_of_sections(machine: Machine) -> None:
    code, lines = smi(machine, "-q", "-d", "MEMORY,utilization", "-i", "0")
    assert code == 0
    assert "Attached GPUs                             : 2" in lines
    assert "        Total                             : 32768 MiB" in lines
    assert "        Gpu                               : 0 %" in lines
    assert not any("Product Name" in line or "Power" in line for line in lines)
    assert any("Product Name" in line for line in smi(machine, "-q")[1])


def test_version_and_help(machine: Machine) -> None:
    assert smi(machine, "--version")[1][0] == "NVIDIA-SMI version  : 515.86.01"
    assert smi(machine, "-h", SIMGPU_MACHINE="/nowhere")[0] == 0


def test_without_driver_or_devices(machine: Machine) -> None:
    code, lines = smi(machine, SIMGPU_MACHINE="/nowhere")
    assert code == 9
    assert lines[0] == (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
        "Make sure that the latest NVIDIA driver is installed and running."
    )
    assert smi(machine, NVIDIA_VISIBLE_DEVICES="void") == (6, ["No devices were found"])
    assert smi(machine, "-i", "7") == (6, ["No devices were found"])
    assert smi(machine, LD_LIBRARY_PATH="/nowhere")[0] == 12


@pytest.mark.parametrize(
    "arguments",
    [
        ["--frobnicate"],
        ["--query-gpu=name"],
        ["--query-gpu=name", "--format=json"],
        ["--query-gpu=name", "--format=csv,pretty"],
        ["--query-gpu=color", "--format=csv"],
        ["--query-compute-apps=color", "--format=csv"],
        ["-q", "-d", "EVERYTHING"],
        ["-i"],
    ],
)
def test_refused_options(machine: Machine, arguments: list[str]) -> None:
    code, lines = smi(machine, *arguments)
    assert code == main.INVALID_ARGUMENT
    assert lines
