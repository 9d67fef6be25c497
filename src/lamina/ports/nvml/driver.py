"""NVML through nvidia-ml-py, in a thread of its own so that a slow driver delays nothing else.

One thread makes all calls, one after another: a driver that must be initialized again is then never shut down under a
call that still runs. An error that means a restarted or missing driver leads to one new initialization before it is
reported. A driver that hangs, as it does with some faulty GPUs, is reported as one that does not answer; its call runs
on, and all others wait for it.
"""

import asyncio
import contextlib
import ctypes
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pynvml as nvml
from msgspec import structs

from lamina.core.mig import MigCard, Placed
from lamina.errors import Outside
from lamina.ports.nvml import links, memory_limits, mig, readings
from lamina.ports.nvml.protocol import GpuFacts, GpuProcess, GpuReading, MigInstanceFacts, XidEvent

log = logging.getLogger(__name__)

T = TypeVar("T")
_MIB = 1024 * 1024
_TURN_S = 0.02
"""How long the thread waits for events before it lets another question in. Processes that start wait for answers."""
PATIENCE_S = 60.0
"""How long an answer may take. Making MIG instances, and waking GPUs up, takes some seconds each."""
_END_S = 5.0
_NODE_WORDS = 16
"""Of 64 NUMA nodes each: as many as Linux knows."""
_VGPU = nvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU
_DOUBLE_BIT = nvml.nvmlEventTypeDoubleBitEccError
_ECC_XID = 48
"""The number under which the driver logs an error of memory that cannot be corrected."""
_STALE = (
    nvml.NVML_ERROR_UNINITIALIZED,
    nvml.NVML_ERROR_DRIVER_NOT_LOADED,
    nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    nvml.NVML_ERROR_UNKNOWN,
)


class DriverNvml:
    """The `Nvml` of the driver library that the loader finds as libnvidia-ml.so.1."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="nvml")
        self._ready = False
        self._events: Any = None
        self._watched: frozenset[str] = frozenset()
        self._connected: tuple[str, ...] = ()
        self._links: dict[str, dict[str, int]] = {}

    async def driver_version(self) -> str:
        return await self._ask("the driver's version", lambda: _text(nvml.nvmlSystemGetDriverVersion()))

    async def cuda_version(self) -> tuple[int, int]:
        version = await self._ask("the version of CUDA", nvml.nvmlSystemGetCudaDriverVersion_v2)
        return version // 1000, version % 1000 // 10

    async def gpus(self) -> tuple[GpuFacts, ...]:
        return await self._ask("the GPUs", self._gpus)

    async def readings(self) -> Mapping[str, GpuReading]:
        return await self._ask("what the GPUs do", _readings)

    async def processes(self, uuid: str) -> tuple[GpuProcess, ...]:
        return await self._ask(f"the processes on {uuid}", lambda: _processes(uuid))

    async def work(self, uuid: str) -> Mapping[int, float] | None:
        return await self._ask(f"the work on {uuid}", lambda: readings.read_work(_handle(uuid), time.time()))

    async def set_exclusive(self, uuid: str, on: bool) -> None:
        await self._ask(f"that the compute mode of {uuid} is set", lambda: _set_exclusive(_handle(uuid), on))

    async def limits_memory(self, uuid: str, cgroup: Path) -> bool:
        return await self._ask("whether it limits memory", lambda: memory_limits.supported(_handle(uuid), cgroup))

    async def limit_memory(self, uuid: str, cgroup: Path, limit: int | None) -> None:
        await self._ask(f"that it limits {cgroup}", partial(_limit_memory, uuid, cgroup, limit))

    async def mig_card(self, uuid: str) -> MigCard:
        return await self._ask(f"the MIG profiles of {uuid}", lambda: mig.card(_handle(uuid)))

    async def mig_instances(self, uuid: str) -> tuple[MigInstanceFacts, ...]:
        return await self._ask(f"the MIG instances of {uuid}", lambda: mig.instances(_handle(uuid)))

    async def set_mig_mode(self, uuid: str, on: bool) -> bool:
        return await self._ask(f"that the MIG mode of {uuid} is set", partial(self._set_mig_mode, uuid, on))

    async def create_mig(self, uuid: str, place: Placed) -> MigInstanceFacts:
        return await self._ask(
            f"that a {place.profile} begins at {place.start} of {uuid}", lambda: mig.create(_handle(uuid), place)
        )

    async def destroy_mig(self, uuid: str, instance: int) -> None:
        await self._ask(
            f"that instance {instance} of {uuid} is destroyed", lambda: mig.destroy(_handle(uuid), instance)
        )

    async def wait_event(self, timeout_s: float) -> XidEvent | None:
        end = time.monotonic() + timeout_s
        while True:
            left = max(0.0, end - time.monotonic())
            event = await self._ask("events", partial(self._wait, min(left, _TURN_S)))
            if event is not None or left <= _TURN_S:
                return event

    async def close(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                await asyncio.get_running_loop().run_in_executor(self._thread, self._shut_down)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, what: str, question: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(self._patience_s):
                return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, what, question)
        except TimeoutError as error:
            raise Outside(f"NVML does not tell {what}: no answer for {self._patience_s:g} s") from error

    def _answer(self, what: str, question: Callable[[], T]) -> T:
        try:
            try:
                self._start()
                return question()
            except nvml.NVMLError as error:
                if error.value not in _STALE:
                    raise
                self._shut_down()
                self._start()
                return question()
        except nvml.NVMLError as error:
            if error.value in _STALE:
                self._shut_down()
            raise Outside(f"NVML does not tell {what}: {error}") from error

    def _start(self) -> None:
        if not self._ready:
            nvml.nvmlInit()
            self._ready = True

    def _shut_down(self) -> None:
        self._events = None
        self._connected = ()
        if self._ready:
            self._ready = False
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError as error:
                log.debug("NVML could not be shut down: %s", error)

    def _gpus(self) -> tuple[GpuFacts, ...]:
        """The GPUs that answer. How they are connected is asked when there are others than before."""
        found = _gpus()
        uuids = tuple(facts.uuid for facts in found)
        if uuids != self._connected:
            rows = links.scores([nvml.nvmlDeviceGetHandleByUUID(uuid) for uuid in uuids])
            self._links = {
                uuid: {other: score for other, score in zip(uuids, row, strict=True) if score}
                for uuid, row in zip(uuids, rows, strict=True)
            }
            self._connected = uuids
        return tuple(structs.replace(facts, links=self._links[facts.uuid]) for facts in found)

    def _set_mig_mode(self, uuid: str, on: bool) -> bool:
        """The driver may reset the GPU for it, and cannot while an event set has the GPU open."""
        handle = _handle(uuid)
        if not mig.set_mode(handle, on) and self._events is not None:
            nvml.nvmlEventSetFree(self._events)
            self._events = None
        self._watched -= {uuid}
        return mig.set_mode(handle, on)

    def _wait(self, timeout_s: float) -> XidEvent | None:
        if self._events is None:
            self._events, self._watched = nvml.nvmlEventSetCreate(), frozenset()
        self._watched = _watching(self._events, self._watched)
        try:
            event = nvml.nvmlEventSetWait_v2(self._events, max(0, round(timeout_s * 1000)))
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_TIMEOUT:
                return None
            if error.value == nvml.NVML_ERROR_NOT_SUPPORTED:
                time.sleep(timeout_s)
                return None
            raise
        xid = _ECC_XID if event.eventType == _DOUBLE_BIT else int(event.eventData)
        return XidEvent(_uuid_of(event.device), xid)


def _handle(uuid: str) -> Any:
    return nvml.nvmlDeviceGetHandleByUUID(uuid)


def _watching(events: Any, watched: frozenset[str]) -> frozenset[str]:
    """Register errors of the GPUs that are not `watched` yet, such as one that came back; all that are watched then."""
    present = set()
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = _text(nvml.nvmlDeviceGetUUID(handle))
        except nvml.NVMLError as error:
            if error.value in _STALE:
                raise
            continue
        present.add(uuid)
        if uuid not in watched:
            _register(handle, uuid, events)
    return frozenset(present)


def _register(handle: Any, uuid: str, events: Any) -> None:
    """Errors of memory that cannot be corrected are read in addition to XIDs where the GPU reports them."""
    try:
        nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError | _DOUBLE_BIT, events)
    except nvml.NVMLError:
        try:
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
        except nvml.NVMLError as error:
            log.warning("%s reports no errors through NVML: %s", uuid, error)


def _gpus() -> tuple[GpuFacts, ...]:
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            found.append(_facts(index))
        except nvml.NVMLError as error:
            if error.value in _STALE:
                raise
            log.debug("GPU %d does not answer: %s", index, error)
    return tuple(found)


def _readings() -> dict[str, GpuReading]:
    found = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            found[_text(nvml.nvmlDeviceGetUUID(handle))] = readings.read(handle)
            for device in mig.handles(handle).values():
                found[_text(nvml.nvmlDeviceGetUUID(device))] = readings.read_part(device)
        except nvml.NVMLError as error:
            if error.value in _STALE:
                raise
            log.debug("GPU %d does not answer: %s", index, error)
    return found


def _facts(index: int) -> GpuFacts:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = _if_supported(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total // _MIB)
    mode = _if_supported(lambda: nvml.nvmlDeviceGetMigMode(handle))
    enabled = mode is not None and mode[0] == nvml.NVML_DEVICE_MIG_ENABLE
    return GpuFacts(
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        index=index,
        name=_text(nvml.nvmlDeviceGetName(handle)),
        memory_mib=memory,
        mig_capable=mode is not None,
        mig_enabled=enabled,
        instances=mig.instances(handle) if enabled else (),
        pci_device=_if_supported(lambda: nvml.nvmlDeviceGetPciInfo(handle).pciDeviceId) or 0,
        numa=_numa(handle),
        compute=_if_supported(lambda: tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle))),
        pci_class=_if_supported(partial(_pci_class, handle)),
        remapping_failed=bool((_if_supported(partial(nvml.nvmlDeviceGetRemappedRows, handle)) or (0, 0, 0, 0))[3]),
        virtual=_if_supported(partial(nvml.nvmlDeviceGetVirtualizationMode, handle)) == _VGPU,
        minor=_if_supported(partial(nvml.nvmlDeviceGetMinorNumber, handle)),
        fabric=links.fabric(handle),
        retired_pages=readings.retired_pages(handle),
        sram_errors=readings.sram_errors(handle),
    )


def _pci_class(handle: Any) -> tuple[int, int]:
    pci = nvml.nvmlPciInfoExt_v1_t(version=nvml.nvmlPciInfoExt_v1)
    nvml.nvmlDeviceGetPciInfoExt(handle, ctypes.byref(pci))
    return pci.baseClass, pci.subClass


def _numa(handle: Any) -> int | None:
    """The NUMA node of the GPU; None where there is not exactly one."""
    words = _if_supported(lambda: nvml.nvmlDeviceGetMemoryAffinity(handle, _NODE_WORDS, nvml.NVML_AFFINITY_SCOPE_NODE))
    nodes = [64 * i + bit for i, word in enumerate(words or ()) for bit in range(64) if word >> bit & 1]
    return nodes[0] if len(nodes) == 1 else None


def _processes(uuid: str) -> tuple[GpuProcess, ...]:
    """Compute processes must be known: otherwise the GPU would pass for an idle one.

    A process that is in two lists uses in all what either of them says, and the lists are not read at one moment.
    """
    handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
    found = list(nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    for listed in (nvml.nvmlDeviceGetGraphicsRunningProcesses, nvml.nvmlDeviceGetMPSComputeRunningProcesses):
        found += _if_supported(partial(listed, handle)) or ()
    known: dict[int, list[int]] = {process.pid: [] for process in found}
    for process in found:
        if process.usedGpuMemory is not None:
            known[process.pid].append(process.usedGpuMemory)
    return tuple(GpuProcess(pid, max(known[pid], default=None)) for pid in sorted(known))


def _set_exclusive(handle: Any, on: bool) -> None:
    wanted = nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS if on else nvml.NVML_COMPUTEMODE_DEFAULT
    if nvml.nvmlDeviceGetComputeMode(handle) != wanted:
        nvml.nvmlDeviceSetComputeMode(handle, wanted)


def _limit_memory(uuid: str, cgroup: Path, limit: int | None) -> None:
    handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
    wanted = memory_limits.UNLIMITED if limit is None else limit
    memory_limits.set_hard(handle, cgroup, wanted)
    if memory_limits.get(handle, cgroup) != wanted:
        raise nvml.NVMLError(nvml.NVML_ERROR_UNKNOWN)


def _if_supported(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except nvml.NVMLError as error:
        if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
            return None
        raise


def _uuid_of(handle: Any) -> str:
    try:
        return _text(nvml.nvmlDeviceGetUUID(handle))
    except nvml.NVMLError:
        return ""


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
