"""What the agent hears of NVML: over a scripted library, restarts and odd answers included."""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from lamina.core.mig_cards import MIG_CARDS
from lamina.errors import Outside
from lamina.ports.clock import FakeClock
from lamina.ports.nvml import DriverNvml, FakeNvml, GpuFacts, GpuProcess, XidEvent, driver, mig, readings
from lamina.ports.nvml.fake import fake_gpus
from tests.waiting import until

MIB = 1024 * 1024


class ScriptedLibrary:
    """As much of nvidia-ml-py as the port uses, for two GPUs; the second one has no MIG and no memory to report.

    `fail` makes the next call of a function raise an error once, `always` each time.
    """

    def __init__(self) -> None:
        self.initialized = 0
        self.fail: dict[str, int] = {}
        self.always: dict[tuple[str, int], int] = {}
        self.events: list[tuple[int, int]] = []
        self.samples: list[SimpleNamespace] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(pynvml, name)
        if inspect.isfunction(found):
            raise AttributeError(f"the script has no {name}")
        return found

    def _call(self, name: str, *arguments: Any) -> Any:
        if name in self.fail:
            raise pynvml.NVMLError(self.fail.pop(name))
        if arguments and (name, arguments[0]) in self.always:
            raise pynvml.NVMLError(self.always[name, arguments[0]])
        return getattr(self, f"do_{name}")(*arguments)

    def do_nvmlDeviceGetProcessUtilization(self, handle: int, since: int) -> list[SimpleNamespace]:
        return self.samples

    def do_nvmlInit(self) -> None:
        self.initialized += 1

    def do_nvmlShutdown(self) -> None:
        self.initialized -= 1

    def do_nvmlSystemGetDriverVersion(self) -> bytes:
        return b"515.86.01"

    def do_nvmlDeviceGetCount(self) -> int:
        return 2

    def do_nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def do_nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        return int(uuid[-1])

    def do_nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def do_nvmlDeviceGetName(self, handle: int) -> str:
        return "A100"

    def do_nvmlDeviceGetCudaComputeCapability(self, handle: int) -> list[int]:
        return [8, 0]

    def do_nvmlDeviceGetPciInfoExt(self, handle: int, pci: Any) -> None:
        if handle == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        pci._obj.baseClass, pci._obj.subClass = 3, 2

    def do_nvmlDeviceGetMinorNumber(self, handle: int) -> int:
        return 1 - handle

    def do_nvmlDeviceGetVirtualizationMode(self, handle: int) -> int:
        return 2 if handle == 1 else 0

    def do_nvmlDeviceGetRemappedRows(self, handle: int) -> tuple[int, int, int, int]:
        if handle == 0:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return 0, 1, 0, 1

    def do_nvmlDeviceGetRetiredPages(self, handle: int, cause: int) -> list[int]:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def do_nvmlDeviceGetMemoryErrorCounter(self, handle: int, kind: int, counter: int, location: int) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def do_nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        if handle == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(total=81920 * MIB)

    def do_nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        if handle == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [1, 1]

    def do_nvmlDeviceGetMaxMigDeviceCount(self, handle: int) -> int:
        return 7

    def do_nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, index: int) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def do_nvmlDeviceGetGpuInstances(self, handle: int, profile: int, found: Any, count: Any) -> None:
        count._obj.value = 0

    def do_nvmlDeviceGetPciInfo(self, handle: int) -> Any:
        if handle == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(busId="00000000:0A:00.0", pciDeviceId=0x20B210DE)

    def do_nvmlDeviceGetMemoryAffinity(self, handle: int, words: int, scope: int) -> list[int]:
        if handle == 1:
            return [3] + [0] * (words - 1)
        return [0, 2] + [0] * (words - 2)

    def do_nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        return [SimpleNamespace(pid=7, usedGpuMemory=3 * MIB), SimpleNamespace(pid=5, usedGpuMemory=None)]

    def do_nvmlDeviceGetMPSComputeRunningProcesses(self, handle: int) -> list[Any]:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)

    def do_nvmlDeviceGetGraphicsRunningProcesses(self, handle: int) -> list[Any]:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def do_nvmlEventSetCreate(self) -> str:
        return "events"

    def do_nvmlDeviceRegisterEvents(self, handle: int, types: int, events: str) -> None:
        return None

    def do_nvmlEventSetWait_v2(self, events: str, timeout_ms: int) -> Any:
        if not self.events:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        handle, xid = self.events.pop(0)
        return SimpleNamespace(device=handle, eventData=xid, eventType=pynvml.nvmlEventTypeXidCriticalError)


for _name in [name.removeprefix("do_") for name in vars(ScriptedLibrary) if name.startswith("do_")]:
    setattr(ScriptedLibrary, _name, lambda self, *arguments, name=_name: self._call(name, *arguments))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ScriptedLibrary:
    made = ScriptedLibrary()
    monkeypatch.setattr(driver, "nvml", made)
    monkeypatch.setattr(mig, "nvml", made)
    monkeypatch.setattr(readings, "nvml", made)
    return made


@pytest.fixture
async def nvml(library: ScriptedLibrary) -> AsyncIterator[DriverNvml]:
    made = DriverNvml()
    yield made
    await made.close()
    assert library.initialized == 0


async def test_facts(nvml: DriverNvml) -> None:
    assert await nvml.driver_version() == "515.86.01"
    assert await nvml.gpus() == (
        GpuFacts(
            *("GPU-0", 0, "A100", 81920),
            mig_capable=True,
            mig_enabled=True,
            pci_device=0x20B210DE,
            numa=65,
            compute=(8, 0),
            pci_class=(3, 2),
            minor=1,
        ),
        GpuFacts("GPU-1", 1, "A100", None, compute=(8, 0), virtual=True, remapping_failed=True, minor=0),
    )
    assert await nvml.processes("GPU-0") == (GpuProcess(5, None), GpuProcess(7, 3 << 20))


@pytest.mark.parametrize("refusal", [pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_NOT_SUPPORTED])
async def test_a_driver_that_is_older_than_some_of_a_cards_profiles(
    nvml: DriverNvml, library: ScriptedLibrary, monkeypatch: pytest.MonkeyPatch, refusal: int
) -> None:
    newest = MIG_CARDS["A100-80GB"].profile("1g.20gb").id

    def instances(handle: int, profile: int, found: Any, count: Any) -> None:
        if profile == newest:
            raise pynvml.NVMLError(refusal)
        count._obj.value = 0

    monkeypatch.setattr(library, "do_nvmlDeviceGetGpuInstances", instances)
    assert [facts.uuid for facts in await nvml.gpus()] == ["GPU-0", "GPU-1"]
    assert await nvml.mig_instances("GPU-0") == ()


@pytest.mark.parametrize("refusal", [pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_NOT_SUPPORTED])
async def test_a_driver_that_does_not_list_processes_is_not_one_without_any(
    nvml: DriverNvml, library: ScriptedLibrary, refusal: int
) -> None:
    library.always["nvmlDeviceGetComputeRunningProcesses", 0] = refusal
    with pytest.raises(Outside, match="NVML does not tell the processes on GPU-0"):
        await nvml.processes("GPU-0")


def sample(pid: int, at: int, percent: int) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, timeStamp=at, smUtil=percent)


async def test_the_latest_sample_of_each_process_counts_unless_it_makes_no_sense(
    nvml: DriverNvml, library: ScriptedLibrary
) -> None:
    library.samples = [sample(1, 20, 30), sample(1, 10, 90), sample(2, 10, 100), sample(3, 10, (1 << 32) - 1)]
    assert await nvml.work("GPU-0") == {1: 0.3, 2: 1.0}


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (pynvml.NVML_ERROR_NOT_FOUND, {}),
        (pynvml.NVML_ERROR_NOT_SUPPORTED, None),
        (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, None),
        (pynvml.NVML_ERROR_NO_PERMISSION, None),
    ],
)
async def test_no_work_differs_from_work_that_is_not_measured(
    nvml: DriverNvml, library: ScriptedLibrary, error: int, answer: dict[int, float] | None
) -> None:
    library.always["nvmlDeviceGetProcessUtilization", 0] = error
    assert await nvml.work("GPU-0") == answer
    library.always["nvmlDeviceGetProcessUtilization", 0] = pynvml.NVML_ERROR_GPU_IS_LOST
    with pytest.raises(Outside, match="NVML does not tell the work on GPU-0"):
        await nvml.work("GPU-0")


async def test_events(nvml: DriverNvml, library: ScriptedLibrary) -> None:
    assert await nvml.wait_event(0.01) is None
    library.events = [(1, 79), (0, 48)]
    assert await nvml.wait_event(0.01) == XidEvent("GPU-1", 79)
    library.always["nvmlDeviceGetUUID", 0] = pynvml.NVML_ERROR_GPU_IS_LOST
    assert await nvml.wait_event(0.01) == XidEvent("", 48)


async def test_gpus_that_report_no_events_do_not_hinder_others(nvml: DriverNvml, library: ScriptedLibrary) -> None:
    library.always["nvmlDeviceRegisterEvents", 0] = pynvml.NVML_ERROR_NOT_SUPPORTED
    library.events = [(1, 79)]
    assert await nvml.wait_event(0.01) == XidEvent("GPU-1", 79)
    library.fail["nvmlEventSetWait_v2"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    assert await nvml.wait_event(0.01) is None


async def test_a_lost_gpu_is_left_out(nvml: DriverNvml, library: ScriptedLibrary) -> None:
    library.always["nvmlDeviceGetHandleByIndex", 0] = pynvml.NVML_ERROR_GPU_IS_LOST
    assert [facts.uuid for facts in await nvml.gpus()] == ["GPU-1"]


@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_DRIVER_NOT_LOADED])
async def test_a_restarted_driver_is_met_again(nvml: DriverNvml, library: ScriptedLibrary, error: int) -> None:
    await nvml.gpus()
    library.fail["nvmlDeviceGetCount"] = error
    assert len(await nvml.gpus()) == 2
    assert library.initialized == 1


async def test_a_missing_driver_is_a_sentence_and_later_an_answer(nvml: DriverNvml, library: ScriptedLibrary) -> None:
    for _ in range(3):
        library.fail["nvmlInit"] = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
        with pytest.raises(Outside, match=r"NVML does not tell the GPUs: .*[Ll]ibrary"):
            await nvml.gpus()
    assert len(await nvml.gpus()) == 2


async def test_the_fake_answers_and_fails_as_configured() -> None:
    clock = FakeClock()
    fake = FakeNvml(fake_gpus(2), clock)
    assert [facts.index for facts in await fake.gpus()] == [0, 1]
    waiting = asyncio.create_task(fake.wait_event(1))
    await clock.advance(0.9)
    assert not waiting.done()
    await clock.advance(0.1)
    assert await waiting is None
    waiting = asyncio.create_task(fake.wait_event(1))
    await clock.advance(0.9)
    fake.strike("GPU-x", 79)
    assert await waiting == XidEvent("GPU-x", 79)
    fake.broken = "the driver is away"
    with pytest.raises(Outside, match="the driver is away"):
        await fake.gpus()


async def test_a_driver_that_hangs_does_not_answer_and_may_come_back(
    library: ScriptedLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some sick GPUs have each call wait for ever, without an error."""
    woken = threading.Event()
    monkeypatch.setattr(library, "do_nvmlSystemGetDriverVersion", lambda: woken.wait(60) and b"1.2", raising=False)
    nvml = DriverNvml(patience_s=0.05)
    for question in (nvml.driver_version, nvml.gpus):
        with pytest.raises(Outside, match=r"NVML does not tell .*: no answer for 0.05 s"):
            await question()
    woken.set()

    async def gpus() -> int:
        with contextlib.suppress(Outside):
            return len(await nvml.gpus())
        return 0

    assert await until(gpus) == 2
    await nvml.close()
