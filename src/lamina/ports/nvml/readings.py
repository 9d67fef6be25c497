"""What a GPU's counters and sensors say at one moment."""

from collections.abc import Callable
from typing import Any, TypeVar

import pynvml as nvml

from lamina.ports.nvml.protocol import GpuReading

T = TypeVar("T")
_UNANSWERED = (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND, nvml.NVML_ERROR_NO_PERMISSION)


def read(handle: Any) -> GpuReading:
    """All of one GPU. Raises NVMLError where it does not answer at all."""
    memory = if_answered(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    rates = if_answered(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    power = if_answered(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    bus = nvml.nvmlDeviceGetPciInfo(handle).busId
    return GpuReading(
        bus_id=bus.decode() if isinstance(bus, bytes) else str(bus),
        used_bytes=None if memory is None else int(memory.used),
        free_bytes=None if memory is None else int(memory.free),
        busy_percent=None if rates is None else int(rates.gpu),
        memory_busy_percent=None if rates is None else int(rates.memory),
        temperature_c=if_answered(lambda: int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))),
        power_w=None if power is None else power / 1000,
    )


def read_part(handle: Any) -> GpuReading:
    """What a MIG device reports: its memory. NVML does not measure its utilization, and sensors are the GPU's."""
    memory = if_answered(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    return GpuReading() if memory is None else GpuReading(used_bytes=int(memory.used), free_bytes=int(memory.free))


def if_answered(question: Callable[[], T]) -> T | None:
    """The answer, or None where this GPU or driver has none."""
    try:
        return question()
    except nvml.NVMLError as error:
        if error.value in _UNANSWERED:
            return None
        raise
