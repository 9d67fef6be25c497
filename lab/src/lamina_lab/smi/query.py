"""`--query-gpu` and `--query-compute-apps`: selected fields as comma-separated values."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import pynvml

from lamina_lab.smi.machine import SmiGpu, SmiMachine, SmiProcess, ask

_NONE = "[N/A]"
_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")


class UnknownField(Exception):
    """A field that cannot be queried; the message is its name."""


def _number(value: float | None, unit: str, digits: int = 0) -> tuple[str, str]:
    return (_NONE, "") if value is None else (f"{value:.{digits}f}", unit)


def _switch(value: bool | None) -> tuple[str, str]:
    return (_NONE if value is None else "Enabled" if value else "Disabled"), ""


def _clock(which: Callable[..., Any], kind: int) -> Callable[[SmiMachine, SmiGpu], tuple[str, str]]:
    return lambda machine, gpu: _number(ask(which, gpu.handle, kind), "MHz")


def _capability(gpu: SmiGpu) -> str:
    pair = ask(pynvml.nvmlDeviceGetCudaComputeCapability, gpu.handle)
    return _NONE if pair is None else f"{pair[0]}.{pair[1]}"


def _serial(gpu: SmiGpu) -> str:
    serial = ask(pynvml.nvmlDeviceGetSerial, gpu.handle)
    return _NONE if serial is None else str(serial)


def _ecc(gpu: SmiGpu) -> bool | None:
    modes = ask(pynvml.nvmlDeviceGetEccMode, gpu.handle)
    return None if modes is None else bool(modes[0])


_Answer = Callable[[SmiMachine, SmiGpu], tuple[str, str]]
_GPU_FIELDS: dict[str, tuple[str, _Answer]] = {
    "timestamp": ("", lambda m, g: (time.strftime("%Y/%m/%d %H:%M:%S.000"), "")),
    "driver_version": ("", lambda m, g: (m.driver, "")),
    "count": ("", lambda m, g: (str(len(m.gpus)), "")),
    "index": ("", lambda m, g: (str(g.index), "")),
    "name": ("", lambda m, g: (g.name, "")),
    "uuid": ("", lambda m, g: (g.uuid, "")),
    "serial": ("", lambda m, g: (_serial(g), "")),
    "pci.bus_id": ("", lambda m, g: (g.bus_id, "")),
    "memory.total": ("MiB", lambda m, g: _number(g.memory_total, "MiB")),
    "memory.used": ("MiB", lambda m, g: _number(g.memory_used, "MiB")),
    "memory.free": ("MiB", lambda m, g: _number(g.memory_free, "MiB")),
    "memory.reserved": ("MiB", lambda m, g: _number(g.memory_total - g.memory_used - g.memory_free, "MiB")),
    "utilization.gpu": ("%", lambda m, g: _number(g.busy, "%")),
    "utilization.memory": ("%", lambda m, g: _number(g.memory_busy, "%")),
    "temperature.gpu": ("", lambda m, g: _number(g.temperature, "")),
    "fan.speed": ("%", lambda m, g: _number(g.fan, "%")),
    "pstate": ("", lambda m, g: (_NONE if g.pstate is None else f"P{g.pstate}", "")),
    "power.draw": ("W", lambda m, g: _number(g.power, "W", 2)),
    "power.limit": ("W", lambda m, g: _number(g.power_limit, "W", 2)),
    "enforced.power.limit": ("W", lambda m, g: _number(g.power_limit, "W", 2)),
    "clocks.current.graphics": ("MHz", _clock(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_GRAPHICS)),
    "clocks.current.sm": ("MHz", _clock(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM)),
    "clocks.current.memory": ("MHz", _clock(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM)),
    "clocks.max.graphics": ("MHz", _clock(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_GRAPHICS)),
    "clocks.max.sm": ("MHz", _clock(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_SM)),
    "clocks.max.memory": ("MHz", _clock(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_MEM)),
    "compute_cap": ("", lambda m, g: (_capability(g), "")),
    "compute_mode": ("", lambda m, g: (_NONE if g.compute_mode is None else _MODES[g.compute_mode], "")),
    "persistence_mode": ("", lambda m, g: _switch(g.persistence)),
    "display_active": ("", lambda m, g: _switch(g.display)),
    "ecc.mode.current": ("", lambda m, g: _switch(_ecc(g))),
    "ecc.errors.uncorrected.volatile.total": ("", lambda m, g: _number(g.ecc_errors, "")),
    "mig.mode.current": ("", lambda m, g: _switch(g.mig)),
}
_OTHER_NAMES = {
    "gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "gpu_serial": "serial",
    "clocks.gr": "clocks.current.graphics", "clocks.sm": "clocks.current.sm", "clocks.mem": "clocks.current.memory",
    "clocks.max.gr": "clocks.max.graphics", "clocks.max.mem": "clocks.max.memory",
}  # fmt: skip
_PROCESS_FIELDS: dict[str, tuple[str, Callable[[SmiGpu, SmiProcess], tuple[str, str]]]] = {
    "timestamp": ("", lambda g, p: (time.strftime("%Y/%m/%d %H:%M:%S.000"), "")),
    "gpu_name": ("", lambda g, p: (g.name, "")),
    "gpu_uuid": ("", lambda g, p: (g.uuid, "")),
    "gpu_bus_id": ("", lambda g, p: (g.bus_id, "")),
    "pid": ("", lambda g, p: (str(p.pid), "")),
    "process_name": ("", lambda g, p: (p.name, "")),
    "used_gpu_memory": ("MiB", lambda g, p: _number(p.memory, "MiB")),
    "used_memory": ("MiB", lambda g, p: _number(p.memory, "MiB")),
}


def gpu_lines(machine: SmiMachine, fields: Sequence[str], header: bool, units: bool) -> list[str]:
    """One line per GPU. Raises UnknownField for an unknown name."""
    chosen = []
    for name in fields:
        field = _GPU_FIELDS.get(_OTHER_NAMES.get(name, name))
        if field is None:
            raise UnknownField(name)
        chosen.append(field)
    rows = [[answer(machine, gpu) for _, answer in chosen] for gpu in machine.gpus]
    return _lines(fields, [unit for unit, _ in chosen], rows, header, units)


def process_lines(
    holders: Sequence[tuple[SmiGpu, SmiProcess]], fields: Sequence[str], header: bool, units: bool
) -> list[str]:
    """One line per process. Raises UnknownField for an unknown name."""
    chosen = []
    for name in fields:
        if name not in _PROCESS_FIELDS:
            raise UnknownField(name)
        chosen.append(_PROCESS_FIELDS[name])
    rows = [[answer(gpu, process) for _, answer in chosen] for gpu, process in holders]
    return _lines(fields, [unit for unit, _ in chosen], rows, header, units)


def _lines(
    fields: Sequence[str], titles: Sequence[str], rows: list[list[tuple[str, str]]], header: bool, units: bool
) -> list[str]:
    out = []
    if header:
        out.append(", ".join(f"{n} [{u}]" if u else n for n, u in zip(fields, titles, strict=True)))
    for row in rows:
        out.append(", ".join(f"{value} {unit}" if unit and units else value for value, unit in row))
    return out
