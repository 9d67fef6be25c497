"""The table that nvidia-smi prints by default: 79 columns, two boxes."""

import time
from collections.abc import Sequence

from lamina_lab.smi import mig
from lamina_lab.smi.machine import SmiGpu, SmiMachine, SmiProcess

_SEAM = "+-------------------------------+----------------------+----------------------+"
_EDGE = f"+{'-' * 77}+"
_COMPUTE_MODES = ("Default", "E. Thread", "Prohibited", "E. Process")
_NAME_WIDTH = 18
_COMMAND_WIDTH = 30


def lines(machine: SmiMachine, holders: Sequence[tuple[SmiGpu, SmiProcess]], now: float) -> list[str]:
    """The whole output. `holders` are the processes with their GPUs, `now` is in seconds since 1970."""
    return [
        f"{time.ctime(now)}       ",
        _EDGE,
        f"| NVIDIA-SMI {machine.driver:<13}Driver Version: {machine.driver:<13}CUDA Version: {machine.cuda:<9}|",
        f"|{_SEAM[1:]}",
        "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |",
        "|                               |                      |               MIG M. |",
        "|===============================+======================+======================|",
        *[line for gpu in machine.gpus for line in _gpu(gpu)],
        " " * 79,
        *mig.table_lines(machine.gpus),
        _EDGE,
        f"| {'Processes:':<76}|",
        "|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |",
        "|        ID   ID                                                   Usage      |",
        f"|{'=' * 77}|",
        *([_process(gpu, process) for gpu, process in holders] or [f"|  {'No running processes found':<75}|"]),
        _EDGE,
    ]


def _gpu(gpu: SmiGpu) -> list[str]:
    name = gpu.name if len(gpu.name) <= _NAME_WIDTH else f"{gpu.name[: _NAME_WIDTH - 3]}..."
    mode = "N/A" if gpu.compute_mode is None else _COMPUTE_MODES[gpu.compute_mode]
    mode_of_mig = "N/A" if gpu.mig is None else "Enabled" if gpu.mig else "Disabled"
    memory = f"{gpu.memory_used}MiB / {gpu.memory_total:>5}MiB"
    return [
        f"| {gpu.index:>3}  {name:<{_NAME_WIDTH}}  {_on_off(gpu.persistence):<3}  "
        f"| {gpu.bus_id:<16} {_on_off(gpu.display):>3} | {_or_na(gpu.ecc_errors):>20} |",
        f"|{_or_na(gpu.fan, '%'):>4}  {_or_na(gpu.temperature, 'C'):>4}    {_pstate(gpu):<3}{_power(gpu):>13} "
        f"|{memory:>21} |{_or_na(gpu.busy, '%'):>8}{mode:>13} |",
        f"|{'':31}|{'':22}|{mode_of_mig:>21} |",
        _SEAM,
    ]


def _process(gpu: SmiGpu, process: SmiProcess) -> str:
    command = process.name
    if len(command) > _COMMAND_WIDTH:
        command = f"...{command[-(_COMMAND_WIDTH - 3) :]}"
    memory = _or_na(process.memory, "MiB")
    gi, ci = _or_na(process.gi), _or_na(process.ci)
    return (
        f"|{gpu.index:>5}{gi:>6}{ci:>5}{process.pid:>10}{process.kind:>7}   {command:<{_COMMAND_WIDTH}}{memory:>10} |"
    )


def _or_na(value: int | None, unit: str = "") -> str:
    return "N/A" if value is None else f"{value}{unit}"


def _on_off(value: bool | None) -> str:
    return "N/A" if value is None else "On" if value else "Off"


def _pstate(gpu: SmiGpu) -> str:
    return "N/A" if gpu.pstate is None else f"P{gpu.pstate}"


def _power(gpu: SmiGpu) -> str:
    used = "N/A" if gpu.power is None else f"{gpu.power:.0f}W"
    return f"{used} / {'N/A' if gpu.power_limit is None else f'{gpu.power_limit:.0f}W'}"
