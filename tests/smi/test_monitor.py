"""S3.7: nvidia-smi dmon, pmon and topo on a simulated machine."""

import signal
import subprocess
import sys

import pytest

from lamina_lab.smi.topo import ranges, word
from tests.signals import signals_received
from tests.simgpu.machines import Machine

UTILIZATION = ["sm", "mem", "enc", "dec", "jpg", "ofa"]


def smi(machine: Machine, *arguments: str, code: int = 0) -> list[str]:
    done = machine.run(sys.executable, "-m", "lamina_lab.smi", *arguments)
    assert (done.returncode, done.stderr) == (code, ""), done.stdout + done.stderr
    return done.stdout.splitlines()


def test_dmon_has_a_line_for_each_gpu(machine: Machine) -> None:
    names, units, *lines = smi(machine, "dmon", "-c", "1")
    assert names.split() == ["#", "gpu", "pwr", "gtemp", "mtemp", *UTILIZATION, "mclk", "pclk"]
    assert units.split() == ["#", "Idx", "W", "C", "C", *["%"] * 6, "MHz", "MHz"]
    assert [line.split()[:4] for line in lines] == [["0", "25", "37", "-"], ["1", "45", "30", "-"]]
    assert {len(line) for line in lines} == {len(names)}


def test_dmon_repeats_its_columns_now_and_then(machine: Machine) -> None:
    lines = smi(machine, "dmon", "-s", "m", "-i", "1", "-c", "11", "-d", "0")
    assert [line.split() for line in lines[:3]] == [
        ["#", "gpu", "fb", "bar1", "ccpm"], ["#", "Idx", "MB", "MB", "MB"], ["1", "0", "-", "0"],
    ]  # fmt: skip
    assert len(lines) == 11 + 2 * 2 and lines[12] == lines[0]


def test_pmon_has_a_line_for_each_process(machine: Machine) -> None:
    process = machine.started(CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert process("alloc(1000)")[0] == 0
    names, _, used, none = smi(machine, "pmon", "-c", "1", "-s", "um")
    assert names.split() == ["#", "gpu", "pid", "type", *UTILIZATION, "fb", "ccpm", "command"]
    cells = used.split()
    assert (cells[:3], cells[9:11]) == (["0", str(process.pid), "C"], ["1303", "0"])
    assert set(none.split()[1:]) == {"-"} and none.split()[0] == "1"


def test_it_goes_on_until_it_is_interrupted(machine: Machine) -> None:
    command = [sys.executable, "-m", "lamina_lab.smi", "dmon", "-d", "0"]
    pipe = subprocess.PIPE
    with signals_received():
        smi = subprocess.Popen(command, env=machine.env, stdout=pipe, stderr=pipe, text=True)
    with smi:
        assert smi.stdout is not None and smi.stderr is not None
        for _ in range(8):
            assert smi.stdout.readline()
        smi.send_signal(signal.SIGINT)
        smi.stdout.read()
        assert (smi.wait(), smi.stderr.read()) == (0, "")


def test_topo_shows_how_gpus_are_connected(machine: Machine) -> None:
    head, first, second, *legend = smi(machine, "topo", "-m")
    assert head.split("\t")[:3] == ["", "GPU0", "GPU1"]
    assert first.split("\t")[:3] == ["GPU0", " X ", "SYS"]
    assert second.split("\t")[:3] == ["GPU1", "SYS", " X "]
    assert "  X    = Self" in legend


NAMES = {410: "NV4", 1220: "NV12", 10: "SYS", 20: "NODE", 30: "PHB", 40: "PXB", 50: "PIX", 0: "N/A"}


@pytest.mark.parametrize(("score", "name"), NAMES.items())
def test_nvlinks_count_before_pcie(score: int, name: str) -> None:
    assert word(score) == name


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([0], "0"), ([0, 1, 2], "0-2"), ([0, 1, 4, 6, 7], "0-1,4,6-7")]
)
def test_numbers_are_written_as_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


@pytest.mark.parametrize(
    "wrong",
    [["dmon", "-s", "x"], ["dmon", "-c", "many"], ["pmon", "-s", "p"], ["dmon", "-m"], ["topo"], ["topo", "-p"],
     ["dmon", "-s", ""], ["pmon", "-d", "-1"]],
    ids=" ".join,
)  # fmt: skip
def test_an_invalid_option_is_refused(machine: Machine, wrong: list[str]) -> None:
    assert "Please run 'nvidia-smi -h' for help." in smi(machine, *wrong, code=2)


def test_a_gpu_that_is_not_there(machine: Machine) -> None:
    assert smi(machine, "dmon", "-i", "7", code=6) == ["No devices were found"]
