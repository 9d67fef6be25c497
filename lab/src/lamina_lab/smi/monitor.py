"""`nvidia-smi dmon` and `pmon`: a line for each GPU, or for each process on it, at an interval."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from lamina_lab.smi.machine import SmiGpu, SmiProcess, ask, processes

GPU_GROUPS = {
    "p": (("pwr", "W"), ("gtemp", "C"), ("mtemp", "C")),
    "u": (("sm", "%"), ("mem", "%"), ("enc", "%"), ("dec", "%"), ("jpg", "%"), ("ofa", "%")),
    "c": (("mclk", "MHz"), ("pclk", "MHz")),
    "m": (("fb", "MB"), ("bar1", "MB"), ("ccpm", "MB")),
}
"""Columns of dmon by the letter of their group, with their units."""
PROCESS_GROUPS = {
    "u": (("sm", "%"), ("mem", "%"), ("enc", "%"), ("dec", "%"), ("jpg", "%"), ("ofa", "%")),
    "m": (("fb", "MB"), ("ccpm", "MB")),
}
GROUPS = {"dmon": GPU_GROUPS, "pmon": PROCESS_GROUPS}
DEFAULTS = {"dmon": "puc", "pmon": "u"}
HEAD_EVERY = 10
"""Rounds after which the names of the columns are repeated."""
LATELY_US = 1_000_000


@dataclass(frozen=True)
class MonitorOptions:
    """`groups` of columns; how many rounds (0: without end) and the seconds between them."""

    groups: str
    count: int = 0
    interval_s: int = 1


Number = int | float | None


def rounds(
    word: str, read: Callable[[], Sequence[SmiGpu]], options: MonitorOptions, pause: Callable[[float], None]
) -> Iterator[list[str]]:
    """The lines of each round, with those of the columns before some. `read` gives the GPUs as they are now."""
    number = 0
    while options.count == 0 or number < options.count:
        if number > 0:
            pause(options.interval_s)
        head = heads(word, options.groups) if number % HEAD_EVERY == 0 else []
        yield [*head, *(line for gpu in read() for line in _LINES[word](gpu, options.groups))]
        number += 1


def heads(word: str, groups: str) -> list[str]:
    """The names of the columns, and their units."""
    columns = [column for group in groups for column in GROUPS[word][group]]
    names = "".join(f"{name:>7}" for name, _ in columns)
    units = "".join(f"{unit:>7}" for _, unit in columns)
    if word == "dmon":
        return [f"# gpu{names}", f"# Idx{units}"]
    return [f"# gpu{'pid':>12}{'type':>7}{names}    command", f"# Idx{'#':>12}{'C/G':>7}{units}    name"]


def gpu_lines(gpu: SmiGpu, groups: str) -> list[str]:
    """The line of a GPU."""
    values = {
        "pwr": gpu.power, "gtemp": gpu.temperature, "sm": gpu.busy, "mem": gpu.memory_busy, "enc": 0, "dec": 0,
        "jpg": 0, "ofa": 0, "fb": gpu.memory_used, "ccpm": 0,
        "mclk": ask(pynvml.nvmlDeviceGetClockInfo, gpu.handle, pynvml.NVML_CLOCK_MEM),
        "pclk": ask(pynvml.nvmlDeviceGetClockInfo, gpu.handle, pynvml.NVML_CLOCK_GRAPHICS),
    }  # fmt: skip
    return [f"{gpu.index:>5}{_cells(GPU_GROUPS, groups, values)}"]


def process_lines(gpu: SmiGpu, groups: str) -> list[str]:
    """The lines of a GPU's processes, or one that says that there is none."""
    work = _work(gpu.handle)
    found = [_process_line(gpu, process, groups, work.get(process.pid)) for process in processes(gpu)]
    return found or [f"{gpu.index:>5}{'-':>12}{'-':>7}{_cells(PROCESS_GROUPS, groups, {})}    -"]


def _process_line(gpu: SmiGpu, process: SmiProcess, groups: str, sample: Any) -> str:
    values: dict[str, Number] = {"fb": process.memory, "ccpm": 0}
    if sample is not None:
        values |= {"sm": sample.smUtil, "mem": sample.memUtil, "enc": sample.encUtil, "dec": sample.decUtil}
    name = process.name.split("/")[-1][:15]
    return f"{gpu.index:>5}{process.pid:>12}{process.kind:>7}{_cells(PROCESS_GROUPS, groups, values)}    {name}"


def _work(handle: Any) -> dict[int, Any]:
    """The latest sample of each process of the last second. NVML says `not found` where there is none."""
    try:
        samples = ask(pynvml.nvmlDeviceGetProcessUtilization, handle, int(time.time() * 1e6) - LATELY_US)
    except pynvml.NVMLError_NotFound:
        return {}
    return {sample.pid: sample for sample in sorted(samples or (), key=lambda sample: sample.timeStamp)}


def _cells(known: dict[str, tuple[tuple[str, str], ...]], groups: str, values: dict[str, Number]) -> str:
    cells = (values.get(name) for group in groups for name, _ in known[group])
    return "".join(f"{'-' if value is None else round(value):>7}" for value in cells)


_LINES = {"dmon": gpu_lines, "pmon": process_lines}
