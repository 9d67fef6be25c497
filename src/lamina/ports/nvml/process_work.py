"""For which part of a GPU's time each process worked lately, as the driver samples it."""

from collections.abc import Mapping
from typing import Any

import pynvml as nvml

from lamina.core.gpu_readings import WORK_LATELY_S

_UNANSWERED = (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND, nvml.NVML_ERROR_NO_PERMISSION)
_WHOLE = 100


def read(handle: Any, now: float) -> Mapping[int, float] | None:
    """By pid. `now` is in s since the epoch. None where the driver does not measure it; raises NVMLError.

    Drivers are known to return samples with figures over 100 %, which say nothing.
    """
    try:
        samples = nvml.nvmlDeviceGetProcessUtilization(handle, int((now - WORK_LATELY_S) * 1e6))
    except nvml.NVMLError as error:
        if error.value == nvml.NVML_ERROR_NOT_FOUND:
            return {}
        if error.value in _UNANSWERED:
            return None
        raise
    latest = {sample.pid: sample for sample in sorted(samples, key=lambda each: each.timeStamp)}
    return {pid: sample.smUtil / _WHOLE for pid, sample in latest.items() if sample.smUtil <= _WHOLE}
