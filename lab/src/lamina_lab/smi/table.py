"""The tables that nvidia-smi prints by default: two boxes of 79 columns or, from driver 550 on, of 91.

Driver 580 draws the line below the versions with a plus at its start. Driver 610 tells the versions of the kernel mode
driver (KMD) and of CUDA in the user mode driver (UMD).
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

from lamina_lab.smi import mig
from lamina_lab.smi.machine import SmiGpu, SmiMachine, SmiProcess

_COMPUTE_MODES = ("Default", "E. Thread", "Prohibited", "E. Process")
_WIDE_SINCE, _CLOSED_SINCE, _TWO_MODES_SINCE = 550, 580, 610


class _Layout(NamedTuple):
    """Widths in columns, and what differs besides them. `titles` are the first three lines of the upper box."""

    width: int
    versions: tuple[int, int]
    """Of the version of nvidia-smi, and of the driver's."""
    columns: tuple[int, int, int]
    name: int
    gap: str
    """In front of what says whether the GPU is persistent."""
    power: int
    limit: int
    used: int
    total: int
    command: int
    titles: tuple[str, str, str]

    @property
    def edge(self) -> str:
        return f"+{'-' * (self.width - 2)}+"

    def seam(self, line: str = "-", end: str = "+") -> str:
        """The line below a row of columns."""
        return end + "+".join(line * width for width in self.columns) + end


_NARROW = _Layout(
    width=79,
    versions=(13, 13),
    columns=(31, 22, 22),
    name=18,
    gap="  ",
    power=13,
    limit=0,
    used=0,
    total=5,
    command=30,
    titles=(
        "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |",
        "|                               |                      |               MIG M. |",
    ),
)
_WIDE = _Layout(
    width=91,
    versions=(23, 15),
    columns=(41, 24, 22),
    name=30,
    gap=" ",
    power=23,
    limit=4,
    used=11,
    total=6,
    command=42,
    titles=(
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
    ),
)


def lines(machine: SmiMachine, holders: Sequence[tuple[SmiGpu, SmiProcess]], now: float) -> list[str]:
    """The whole output. `holders` are the processes with their GPUs, `now` is in seconds since 1970."""
    text = machine.driver.partition(".")[0]
    branch = int(text) if text.isdecimal() else 0
    wide = branch >= _WIDE_SINCE
    layout = _WIDE if wide else _NARROW
    processes = [_process(layout, gpu, process) for gpu, process in holders]
    return [
        f"{time.ctime(now)}       ",
        layout.edge,
        f"| NVIDIA-SMI {_versions(layout, machine, branch)}|",
        layout.seam() if branch >= _CLOSED_SINCE else f"|{layout.seam()[1:]}",
        *layout.titles,
        layout.seam("=", "|"),
        *[line for gpu in machine.gpus for line in _gpu(layout, gpu)],
        " " * layout.width,
        *mig.table_lines(machine.gpus, wide=wide),
        layout.edge,
        f"| {'Processes:':<{layout.width - 3}}|",
        f"|  GPU   GI   CI        PID   Type   {'Process name':<{layout.command}}GPU Memory |",
        f"|        ID   ID                     {'':<{layout.command}}Usage      |",
        f"|{'=' * (layout.width - 2)}|",
        *(processes or [f"|  {'No running processes found':<{layout.width - 4}}|"]),
        layout.edge,
    ]


def _versions(layout: _Layout, machine: SmiMachine, branch: int) -> str:
    own, driver = layout.versions
    versions = f"Driver Version: {machine.driver:<{driver}}CUDA Version: {machine.cuda:<9}"
    if branch >= _TWO_MODES_SINCE:
        versions = f"KMD Version: {machine.driver:<{driver - 1}}CUDA UMD Version: {machine.cuda:<9}"
    return f"{machine.driver:<{own}}{versions}"


def _gpu(layout: _Layout, gpu: SmiGpu) -> list[str]:
    name = gpu.name if len(gpu.name) <= layout.name else f"{gpu.name[: layout.name - 3]}..."
    mode = "N/A" if gpu.compute_mode is None else _COMPUTE_MODES[gpu.compute_mode]
    mode_of_mig = "N/A" if gpu.mig is None else "Enabled" if gpu.mig else "Disabled"
    memory = f"{f'{gpu.memory_used}MiB':>{layout.used}} / {gpu.memory_total:>{layout.total}}MiB"
    first, second, third = layout.columns
    facts = f" {gpu.index:>3}  {name:<{layout.name}}{layout.gap}{_on_off(gpu.persistence):<3}"
    bus = f"{gpu.bus_id:<16} {_on_off(gpu.display):>3}"
    state = f"{_or_na(gpu.fan, '%'):>4}  {_or_na(gpu.temperature, 'C'):>4}    {_pstate(gpu):<3}"
    work = f"{_or_na(gpu.busy, '%'):>8}{mode:>13}"
    return [
        f"|{facts:<{first}}|{bus:>{second - 1}} |{_or_na(gpu.ecc_errors):>{third - 1}} |",
        f"|{state}{_power(layout, gpu):>{layout.power}} |{memory:>{second - 1}} |{work} |",
        f"|{'':{first}}|{'':{second}}|{mode_of_mig:>{third - 1}} |",
        layout.seam(),
    ]


def _process(layout: _Layout, gpu: SmiGpu, process: SmiProcess) -> str:
    command = process.name
    if len(command) > layout.command:
        command = f"...{command[-(layout.command - 3) :]}"
    memory = _or_na(process.memory, "MiB")
    gi, ci = _or_na(process.gi), _or_na(process.ci)
    return (
        f"|{gpu.index:>5}{gi:>6}{ci:>5}{process.pid:>10}{process.kind:>7}   {command:<{layout.command}}{memory:>10} |"
    )


def _or_na(value: int | None, unit: str = "") -> str:
    return "N/A" if value is None else f"{value}{unit}"


def _on_off(value: bool | None) -> str:
    return "N/A" if value is None else "On" if value else "Off"


def _pstate(gpu: SmiGpu) -> str:
    return "N/A" if gpu.pstate is None else f"P{gpu.pstate}"


def _power(layout: _Layout, gpu: SmiGpu) -> str:
    used, limit = ("N/A" if watts is None else f"{watts:.0f}W" for watts in (gpu.power, gpu.power_limit))
    return f"{used} / {limit:>{layout.limit + 1}}"
