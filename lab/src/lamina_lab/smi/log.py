"""`-q`: the long form, one value per line, in the sections that `-d` selects."""

import time
from collections.abc import Callable, Sequence

import pynvml

from lamina_lab.smi.machine import MIB, SmiGpu, SmiMachine, ask, processes

_COLUMN = 42


def _value(depth: int, key: str, value: object) -> str:
    return f"{' ' * 4 * depth + key:<{_COLUMN}}: {'N/A' if value is None else value}"


def _unit(value: float | None, unit: str, digits: int = 0) -> str | None:
    return None if value is None else f"{value:.{digits}f} {unit}"


def _product(gpu: SmiGpu) -> list[str]:
    persistence = None if gpu.persistence is None else "Enabled" if gpu.persistence else "Disabled"
    return [
        _value(1, "Product Name", gpu.name),
        _value(1, "Persistence Mode", persistence),
        _value(1, "Serial Number", ask(pynvml.nvmlDeviceGetSerial, gpu.handle)),
        _value(1, "GPU UUID", gpu.uuid),
        _value(1, "Minor Number", ask(pynvml.nvmlDeviceGetMinorNumber, gpu.handle)),
    ]


def _memory(gpu: SmiGpu) -> list[str]:
    bar1 = ask(pynvml.nvmlDeviceGetBAR1MemoryInfo, gpu.handle)
    reserved = gpu.memory_total - gpu.memory_used - gpu.memory_free
    out = [
        "    FB Memory Usage",
        _value(2, "Total", f"{gpu.memory_total} MiB"),
        _value(2, "Reserved", f"{reserved} MiB"),
        _value(2, "Used", f"{gpu.memory_used} MiB"),
        _value(2, "Free", f"{gpu.memory_free} MiB"),
    ]
    if bar1 is not None:
        out += [
            "    BAR1 Memory Usage",
            _value(2, "Total", f"{bar1.bar1Total // MIB} MiB"),
            _value(2, "Used", f"{bar1.bar1Used // MIB} MiB"),
            _value(2, "Free", f"{bar1.bar1Free // MIB} MiB"),
        ]
    return out


def _utilization(gpu: SmiGpu) -> list[str]:
    encoder = ask(pynvml.nvmlDeviceGetEncoderUtilization, gpu.handle)
    decoder = ask(pynvml.nvmlDeviceGetDecoderUtilization, gpu.handle)
    return [
        "    Utilization",
        _value(2, "Gpu", _unit(gpu.busy, "%")),
        _value(2, "Memory", _unit(gpu.memory_busy, "%")),
        _value(2, "Encoder", None if encoder is None else f"{encoder[0]} %"),
        _value(2, "Decoder", None if decoder is None else f"{decoder[0]} %"),
    ]


def _temperature(gpu: SmiGpu) -> list[str]:
    return ["    Temperature", _value(2, "GPU Current Temp", _unit(gpu.temperature, "C"))]


def _power(gpu: SmiGpu) -> list[str]:
    return [
        "    Power Readings",
        _value(2, "Power Draw", _unit(gpu.power, "W", 2)),
        _value(2, "Enforced Power Limit", _unit(gpu.power_limit, "W", 2)),
    ]


def _pids(gpu: SmiGpu) -> list[str]:
    out = []
    for process in processes(gpu):
        out += [
            _value(2, "Process ID", process.pid),
            _value(3, "Type", process.kind),
            _value(3, "Name", process.name),
            _value(3, "Used GPU Memory", _unit(process.memory, "MiB")),
        ]
    return ["    Processes", *out] if out else [_value(1, "Processes", "None")]


_SECTIONS: dict[str, Callable[[SmiGpu], list[str]]] = {
    "MEMORY": _memory,
    "UTILIZATION": _utilization,
    "TEMPERATURE": _temperature,
    "POWER": _power,
    "PIDS": _pids,
}


def unknown_sections(names: Sequence[str]) -> list[str]:
    """The names that are not sections."""
    return [name for name in names if name not in _SECTIONS]


def lines(machine: SmiMachine, count: int, sections: Sequence[str], now: float) -> list[str]:
    """The log of the machine's GPUs. `count` is the number of attached GPUs; no sections means all of them."""
    out = [
        "",
        "==============NVSMI LOG==============",
        "",
        _value(0, "Timestamp", time.ctime(now)),
        _value(0, "Driver Version", machine.driver),
        _value(0, "CUDA Version", machine.cuda),
        "",
        _value(0, "Attached GPUs", count),
    ]
    for gpu in machine.gpus:
        out.append(f"GPU {gpu.bus_id}")
        if not sections:
            out += _product(gpu)
        for name in sections or _SECTIONS:
            out += _SECTIONS[name](gpu)
        out.append("")
    return out
