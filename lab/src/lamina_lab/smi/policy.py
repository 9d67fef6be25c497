"""`nvidia-smi compute-policy`: the longest time slice of processes on a GPU.

NVML has no call for it and NVIDIA documents only the help, so the layout of the listing is ours. The simulated
driver has two calls of its own; other drivers do not support it.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import pynvml

from lamina_lab.smi.machine import SmiGpu

SLICES = ("Default", "Short", "Medium", "Long")
"""Indexed by the numbers of the option and the driver."""
HELP = """
    Compute Policy -- Control and list compute policies.

    Usage: nvidia-smi compute-policy [options]

    Options include:
    [-i | --id]: GPU device ID's. Provide comma
                 separated values for more than one device

    [-l | --list]: List all compute policies

    [ | --set-timeslice]: Set timeslice config for a GPU:
                          0=DEFAULT, 1=SHORT, 2=MEDIUM, 3=LONG

    [-h | --help]: Display help information

"""


def list_lines(gpus: Sequence[SmiGpu]) -> tuple[list[str], bool]:
    """`--list`, and whether all GPUs answered."""
    lines, well = [], True
    for gpu in gpus:
        value = ctypes.c_uint()
        try:
            _call("simgpuDeviceGetTimeSlice", gpu.handle, ctypes.byref(value))
        except pynvml.NVMLError as error:
            lines.append(f"Unable to get the compute policies of GPU {gpu.bus_id}: {error}")
            well = False
            continue
        lines.append(f"| {gpu.index:>3}  {'Timeslice':<30}{SLICES[value.value]:<20} |")
    edge = f"+{'-' * 57}+"
    head = [edge, f"| {'GPU compute policies:':<56}|", f"| {'GPU  Name':<35}{'Value':<20} |", f"|{'=' * 57}|"]
    return [*head, *lines, edge], well


def set_slice(gpus: Sequence[SmiGpu], number: int) -> tuple[list[str], bool]:
    """`--set-timeslice`, and whether all GPUs accepted it."""
    lines, well = [], True
    for gpu in gpus:
        try:
            _call("simgpuDeviceSetTimeSlice", gpu.handle, ctypes.c_uint(number))
            lines.append(f"Set timeslice to {SLICES[number].upper()} for GPU {gpu.bus_id}")
        except pynvml.NVMLError as error:
            lines.append(f"Unable to set timeslice for GPU {gpu.bus_id}: {error}")
            well = False
    return [*lines, "All done."], well


def _call(name: str, handle: Any, argument: Any) -> None:
    try:
        function = pynvml._nvmlGetFunctionPointer(name)
    except pynvml.NVMLError_FunctionNotFound:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED) from None
    code = function(handle, argument)
    if code != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(code)
