"""Evaluates an expression with nvidia-ml-py on the machine of its environment; prints the result, or the error code."""

import sys

import pynvml as nv


def holders(device: object) -> dict[int, int]:
    return {p.pid: p.usedGpuMemory >> 20 for p in nv.nvmlDeviceGetComputeRunningProcesses(device)}


def wait_for_event(device: object, ms: int) -> tuple[int, int]:
    events = nv.nvmlEventSetCreate()
    nv.nvmlDeviceRegisterEvents(device, nv.nvmlEventTypeXidCriticalError, events)
    print("ready", flush=True)
    event = nv.nvmlEventSetWait_v2(events, ms)
    return event.eventType, event.eventData


try:
    nv.nvmlInit()
    scope = globals() | {f"gpu{i}": nv.nvmlDeviceGetHandleByIndex(i) for i in range(nv.nvmlDeviceGetCount())}
    print(repr(eval(sys.argv[1], scope)))
except nv.NVMLError as error:
    print(f"error {error.value}")
