"""What NVML reports about the machine, read once. A value that a GPU does not support is None."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml

MIB = 1 << 20
_NO_INSTANCE = 0xFFFF_FFFF


@dataclass(frozen=True)
class SmiProcess:
    """A process that holds memory of a GPU. Memory is in MiB, None if NVML does not report it."""

    pid: int
    name: str
    kind: str
    memory: int | None
    gi: int | None = None
    ci: int | None = None


@dataclass(frozen=True)
class SmiMigDevice:
    """A MIG device: a compute instance of a GPU instance. Engines: copy, decoders, encoders, JPEG, OFA."""

    index: int
    gi: int
    ci: int
    profile: str
    uuid: str
    memory_total: int
    memory_used: int
    sms: int
    slices: int
    compute_profile: int
    engines: tuple[int, int, int, int, int]


@dataclass(frozen=True)
class SmiGpu:
    """The current state of a GPU: memory in MiB, power in watts, clocks in MHz, utilization in percent."""

    handle: Any
    index: int
    name: str
    uuid: str
    bus_id: str
    persistence: bool | None
    display: bool | None
    temperature: int | None
    fan: int | None
    pstate: int | None
    power: float | None
    power_limit: float | None
    memory_total: int
    memory_used: int
    memory_free: int
    busy: int | None
    memory_busy: int | None
    ecc_errors: int | None
    compute_mode: int | None
    mig: bool | None
    devices: tuple[SmiMigDevice, ...] = ()


@dataclass(frozen=True)
class SmiMachine:
    """The driver and its GPUs."""

    driver: str
    nvml: str
    cuda: str
    gpus: tuple[SmiGpu, ...]


def ask(question: Callable[..., Any], *arguments: Any) -> Any:
    """NVML's answer, or None if the GPU or the library does not support the call."""
    try:
        return question(*arguments)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_NoPermission):
        return None


def read() -> SmiMachine:
    """Read all visible GPUs. NVML must be initialized. Raises pynvml.NVMLError if it fails as a whole."""
    cuda = ask(pynvml.nvmlSystemGetCudaDriverVersion)
    return SmiMachine(
        driver=_text(pynvml.nvmlSystemGetDriverVersion()),
        nvml=_text(pynvml.nvmlSystemGetNVMLVersion()),
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda is not None else "N/A",
        gpus=tuple(_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())),
    )


def processes(gpu: SmiGpu) -> tuple[SmiProcess, ...]:
    """Compute processes of a GPU, of which some are clients of MPS, then graphics processes."""
    found = []
    clients = {process.pid for process in ask(pynvml.nvmlDeviceGetMPSComputeRunningProcesses, gpu.handle) or ()}
    for kind, question in (
        ("C", pynvml.nvmlDeviceGetComputeRunningProcesses),
        ("G", pynvml.nvmlDeviceGetGraphicsRunningProcesses),
    ):
        for process in ask(question, gpu.handle) or ():
            memory = process.usedGpuMemory
            found.append(
                SmiProcess(
                    process.pid,
                    process_name(process.pid),
                    "M+C" if process.pid in clients else kind,
                    None if memory is None else memory // MIB,
                    _instance(process.gpuInstanceId),
                    _instance(process.computeInstanceId),
                )
            )
    return tuple(found)


def process_name(pid: int) -> str:
    """The command of a process, if NVML knows it."""
    try:
        return _text(pynvml.nvmlSystemGetProcessName(pid))
    except pynvml.NVMLError:
        return "[Not Found]"


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _gpu(index: int) -> SmiGpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    rates = ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
    power, limit = ask(pynvml.nvmlDeviceGetPowerUsage, handle), ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    ecc = ask(pynvml.nvmlDeviceGetEccMode, handle)
    mig = ask(pynvml.nvmlDeviceGetMigMode, handle)
    return SmiGpu(
        handle=handle,
        index=index,
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        bus_id=_text(pynvml.nvmlDeviceGetPciInfo(handle).busId),
        persistence=_flag(ask(pynvml.nvmlDeviceGetPersistenceMode, handle)),
        display=_flag(ask(pynvml.nvmlDeviceGetDisplayActive, handle)),
        temperature=ask(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
        fan=ask(pynvml.nvmlDeviceGetFanSpeed, handle),
        pstate=ask(pynvml.nvmlDeviceGetPerformanceState, handle),
        power=None if power is None else power / 1000,
        power_limit=None if limit is None else limit / 1000,
        memory_total=memory.total // MIB,
        memory_used=memory.used // MIB,
        memory_free=memory.free // MIB,
        busy=None if rates is None else rates.gpu,
        memory_busy=None if rates is None else rates.memory,
        ecc_errors=_volatile_errors(handle) if ecc is not None and ecc[0] else None,
        compute_mode=ask(pynvml.nvmlDeviceGetComputeMode, handle),
        mig=_flag(mig[0]) if mig is not None else None,
        devices=_devices(handle) if mig is not None and mig[0] else (),
    )


def _instance(number: int | None) -> int | None:
    return None if number in (None, _NO_INSTANCE) else number


def _devices(handle: Any) -> tuple[SmiMigDevice, ...]:
    """The GPU's MIG devices, if any."""
    found = []
    for index in range(ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        try:
            found.append(_device(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index), index))
        except (pynvml.NVMLError_NotFound, pynvml.NVMLError_InvalidArgument):
            continue
    return tuple(found)


def _device(device: Any, index: int) -> SmiMigDevice:
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    attributes = pynvml.nvmlDeviceGetAttributes(device)
    slices = attributes.computeInstanceSliceCount
    return SmiMigDevice(
        index=index,
        gi=pynvml.nvmlDeviceGetGpuInstanceId(device),
        ci=pynvml.nvmlDeviceGetComputeInstanceId(device),
        profile=_text(pynvml.nvmlDeviceGetName(device)).rpartition("MIG ")[2],
        uuid=_text(pynvml.nvmlDeviceGetUUID(device)),
        memory_total=memory.total // MIB,
        memory_used=memory.used // MIB,
        sms=attributes.multiprocessorCount,
        slices=slices,
        compute_profile={7: 4, 8: 5, 6: 6}.get(slices, slices - 1),
        engines=(
            attributes.sharedCopyEngineCount,
            attributes.sharedDecoderCount,
            attributes.sharedEncoderCount,
            attributes.sharedJpegCount,
            attributes.sharedOfaCount,
        ),
    )


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _volatile_errors(handle: Any) -> int | None:
    errors: int | None = ask(
        pynvml.nvmlDeviceGetTotalEccErrors,
        handle,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    )
    return errors
