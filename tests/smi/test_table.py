"""The table has the seeds' layout, line by line."""

import re

import pytest

from lamina_lab.smi import table
from lamina_lab.smi.machine import SmiGpu, SmiMachine, SmiProcess
from tests import seeds

V100 = SmiGpu(
    handle=None, index=0, name="Tesla V100-PCIE-32GB", uuid="GPU-0", bus_id="00000000:D8:00.0", persistence=True,
    display=False, temperature=37, fan=None, pstate=0, power=26.4, power_limit=250.0, memory_total=1000, memory_used=0,
    memory_free=1000, busy=0, memory_busy=0, ecc_errors=0, compute_mode=0, mig=None,
)  # fmt: skip


def but(gpu: SmiGpu, **changes: object) -> SmiGpu:
    return SmiGpu(**{**gpu.__dict__, **changes})  # type: ignore[arg-type]


def printed(gpu: SmiGpu, *processes: SmiProcess, driver: str = "515.86.01", cuda: str = "11.7") -> list[str]:
    machine = SmiMachine(driver=driver, nvml="", cuda=cuda, gpus=(gpu,))
    return table.lines(machine, [(gpu, process) for process in processes], 0.0)


def outputs_of_nvidia_smi(number: str, width: int = 77) -> list[list[str]]:
    """Each output in a seed, without its date, from the first line of the upper box to the last of the lower."""
    lines = [line.strip("\n") for line in seeds.seed(number).splitlines()]
    starts = [i for i, line in enumerate(lines) if re.match(r" *\| NVIDIA-SMI", line)]
    found = []
    for start in starts:
        ends = [i for i in range(start, min(start + 40, len(lines))) if re.fullmatch(rf" *\+-{{{width}}}\+", lines[i])]
        found.append(lines[start - 1 : ends[1] + 1])
    return found


@pytest.mark.parametrize("which", [0, 1, 2])
def test_the_output_of_seed_004(which: int) -> None:
    shown = [("D8", 37, 26.0, 1000), ("AF", 36, 24.0, 3000), ("AF", 35, 24.0, 10000)]
    expected = outputs_of_nvidia_smi("004")[which]
    bus, temperature, power, total = shown[which]
    gpu = but(V100, bus_id=f"00000000:{bus}:00.0", temperature=temperature, power=power, memory_total=total)
    assert printed(gpu)[1:] == expected


@pytest.mark.parametrize(("which", "total", "idle"), [(0, 5120, False), (1, 16160, True)])
def test_the_output_of_seed_000(which: int, total: int, idle: bool) -> None:
    """The document lost some columns of blanks on its way, so blanks do not count here."""
    expected = [re.sub(" +", " ", line.strip()) for line in outputs_of_nvidia_smi("000")[which]]
    gpu = but(
        V100, name="Tesla V100-SXM2-16GB", bus_id="00000000:21:01.0", persistence=False, temperature=27, power=37.0,
        power_limit=300.0, memory_total=total,
    )  # fmt: skip
    own = [re.sub(" +", " ", line.strip()) for line in printed(gpu, driver="470.57.02", cuda="11.4")[1:]]
    if not idle:
        own = [line for line in own if "No running processes" not in line]
    assert own == expected


@pytest.mark.parametrize(
    "gpu",
    [
        V100,
        but(V100, memory_total=143771, memory_used=143771, busy=100, temperature=101, power=700.0, power_limit=700.0),
        but(V100, name="T4", mig=True, ecc_errors=12345, display=True, fan=100, compute_mode=3, index=15),
        but(V100, fan=None, power=None, power_limit=None, temperature=None, busy=None, ecc_errors=None, pstate=None),
        but(V100, compute_mode=None, persistence=None, display=None, mig=False),
    ],
)
@pytest.mark.parametrize(("driver", "width"), [("515.86.01", 79), ("549.9", 79), ("550.54.15", 91), ("610.1", 91)])
def test_every_line_has_the_same_width(gpu: SmiGpu, driver: str, width: int) -> None:
    lines = printed(
        gpu,
        SmiProcess(1234567, "/a/very/long/path/to/some/program/in/the/deep/of/the/tree", "C", 143771),
        SmiProcess(1, "x", "G", None),
        driver=driver,
    )
    assert {len(line) for line in lines[1:]} == {width}


A100 = but(
    V100, name="NVIDIA A100-PCIE-40GB", bus_id="00000000:0A:00.0", memory_total=40960, power_limit=250.0, mig=False,
    ecc_errors=0,
)  # fmt: skip
OTHER = but(A100, index=1, bus_id="00000000:AE:00.0", temperature=38, power=62.0, memory_used=38, compute_mode=3)


@pytest.mark.parametrize("which", [0, 1])
def test_s2_d_the_output_of_seed_002(which: int) -> None:
    """What driver 550 prints: of one GPU in a container, where no process is listed, and of two with clients of MPS."""
    first = (
        but(A100, temperature=35, power=38.0, memory_used=39023),
        but(A100, temperature=55, power=121.0, memory_used=495, busy=100, compute_mode=3),
    )[which]
    server = SmiProcess(543063, "nvidia-cuda-mps-server", "C", 30)
    client = SmiProcess(686657, "/usr/bin/dcgmproftester12", "M+C", 456)
    gpus = [(first,), (first, OTHER)][which]
    holders = [(), ((first, server), (first, client), (OTHER, server))][which]
    machine = SmiMachine(driver="550.54.15", nvml="", cuda="12.4", gpus=gpus)
    own = table.lines(machine, holders, 0.0)[1:]
    if not holders:
        own = [line for line in own if "No running processes" not in line]
    expected = outputs_of_nvidia_smi("002", 89)[which]
    assert [line.rstrip() for line in own] == [line.rstrip() for line in expected]


def test_running_processes_replace_the_sentence() -> None:
    lines = printed(V100, SmiProcess(12345, "python3", "C", 1487))
    assert "|    0   N/A  N/A     12345      C   python3                          1487MiB |" in lines
    assert not any("No running" in line for line in lines)
    assert any("No running processes found" in line for line in printed(V100))


@pytest.mark.parametrize(
    ("driver", "cuda", "versions", "below"),
    [
        ("575.57.08", "12.9", "575.57.08              Driver Version: 575.57.08      CUDA Version: 12.9     ", "|"),
        ("580.105.08", "13.0", "580.105.08             Driver Version: 580.105.08     CUDA Version: 13.0     ", "+"),
        ("595.78", "13.2", "595.78                 Driver Version: 595.78         CUDA Version: 13.2     ", "+"),
        ("610.43.02", "13.3", "610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     ", "+"),
    ],
)
def test_the_head_of_the_table_follows_the_branch_of_the_driver(
    driver: str, cuda: str, versions: str, below: str
) -> None:
    """As printed on machines with these drivers."""
    head = printed(V100, driver=driver, cuda=cuda)[2:4]
    assert head == [f"| NVIDIA-SMI {versions}|", f"{below}{'-' * 41}+{'-' * 24}+{'-' * 22}+"]
