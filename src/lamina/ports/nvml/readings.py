"""What a GPU says of itself at one moment: counters and sensors, worn memory, and the work of each process."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pynvml as nvml

from lamina.core.gpu_facts import WORK_LATELY_S
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


# Cards before Ampere retire pages, later ones remap rows; each kind has no answer to the other's question.
_CAUSES = (
    nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
    nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
)


def retired_pages(handle: Any) -> int | None:
    """Pages retired for errors of either kind; None where the GPU does not tell."""
    try:
        return sum(len(nvml.nvmlDeviceGetRetiredPages(handle, cause)) for cause in _CAUSES)
    except nvml.NVMLError:
        return None


def sram_errors(handle: Any) -> int | None:
    """Errors of SRAM in the GPU's life that could not be corrected; None where the GPU does not tell."""
    try:
        return int(
            nvml.nvmlDeviceGetMemoryErrorCounter(
                handle,
                nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                nvml.NVML_AGGREGATE_ECC,
                nvml.NVML_MEMORY_LOCATION_SRAM,
            )
        )
    except nvml.NVMLError:
        return None


_UNSUPPORTED_WORK = (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND, nvml.NVML_ERROR_NO_PERMISSION)
_WHOLE = 100


def read_work(handle: Any, now: float) -> Mapping[int, float] | None:
    """For which part of the GPU's time each process worked lately, by PID. `now` is in seconds since 1970.

    None where the driver does not measure it; raises NVMLError.

    Drivers are known to return samples with figures over 100 %, which say nothing.
    """
    try:
        samples = nvml.nvmlDeviceGetProcessUtilization(handle, int((now - WORK_LATELY_S) * 1e6))
    except nvml.NVMLError as error:
        if error.value == nvml.NVML_ERROR_NOT_FOUND:
            return {}
        if error.value in _UNSUPPORTED_WORK:
            return None
        raise
    latest = {sample.pid: sample for sample in sorted(samples, key=lambda each: each.timeStamp)}
    return {pid: sample.smUtil / _WHOLE for pid, sample in latest.items() if sample.smUtil <= _WHOLE}
