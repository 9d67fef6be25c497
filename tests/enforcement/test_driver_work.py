"""What `lamina run` learns from NVML about the runs that share a GPU."""

import ctypes
from pathlib import Path

import pytest

from lamina.enforcement import DeviceLimit, Limits, driver_work, layout, write_container
from lamina.enforcement.driver_figures import Confirmation
from lamina.enforcement.driver_work import LOOK_NS, DriverWork
from lamina.enforcement.open_container import OpenContainer
from lamina.errors import Outside

GPU = "GPU-00000000-0000-0000-0000-000000000001"
BEGIN = 10**12


class NvmlLibrary:
    """A driver with these parts of the GPU's time by PID."""

    def __init__(self, folder: Path) -> None:
        self.said: dict[int, float] | None = {11: 0.25, 12: 0.5, 99: 0.2}
        self.asked, self.answers = 0, True

    def work(self, uuid: str, now: float) -> dict[int, float] | None:
        self.asked += 1
        if not self.answers:
            raise Outside("NVML does not answer")
        return self.said

    def close(self) -> None: ...


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DriverWork:
    monkeypatch.setattr(driver_work, "NvmlLibrary", NvmlLibrary)
    return DriverWork(tmp_path)


def container(folder: Path, *pids: int, other_namespace: bool = False) -> OpenContainer:
    """One whose usage file has slots of these processes, as it was read."""
    namespace = (Path("/proc/self/ns/pid").stat().st_ino + other_namespace) % (1 << layout.NS_BITS)
    folder.mkdir()
    write_container(folder, Limits(devices=(DeviceLimit(uuid=GPU, memory_bytes=1 << 30),)))
    with (folder / "usage").open("r+b") as file:
        file.seek(layout.UsageFile.slots_used.offset)
        file.write(len(pids).to_bytes(4, "little"))
        for number, pid in enumerate(pids):
            file.seek(ctypes.sizeof(layout.UsageFile) + number * layout.slot_stride(1))
            file.write((pid | namespace << layout.PID_BITS + layout.START_BITS).to_bytes(8, "little"))
    attended = OpenContainer(folder, writing=False)
    attended.read()
    return attended


def test_each_run_has_the_work_of_its_processes(work: DriverWork, tmp_path: Path) -> None:
    one, two = container(tmp_path / "one", 11, 12), container(tmp_path / "two", 99)
    work.look([one, two], BEGIN)
    assert work.confirmation(one.folder, GPU) == Confirmation(2, 0.75, asked_at=BEGIN)
    assert work.confirmation(two.folder, GPU) == Confirmation(1, 0.2, asked_at=BEGIN)
    assert work.confirmation(tmp_path, GPU) is None


def test_a_run_of_containers_is_taken_at_its_word(work: DriverWork, tmp_path: Path) -> None:
    """Its PIDs are those of other processes on the machine."""
    one, two = container(tmp_path / "one", 11, other_namespace=True), container(tmp_path / "two", 99)
    work.look([one, two], BEGIN)
    assert work.confirmation(one.folder, GPU) is None
    assert work.confirmation(two.folder, GPU) == Confirmation(1, 0.2, asked_at=BEGIN)


def test_the_driver_is_asked_twice_a_second(work: DriverWork, tmp_path: Path) -> None:
    pair = [container(tmp_path / "one", 11), container(tmp_path / "two", 99)]
    for step in range(100):
        work.look(pair, BEGIN + step * LOOK_NS // 50)
    assert work._nvml is not None and work._nvml.asked == 2  # type: ignore[attr-defined]


def test_a_run_that_is_alone_needs_no_figure(work: DriverWork, tmp_path: Path) -> None:
    one = container(tmp_path / "one", 11)
    work.look([one], BEGIN)
    assert work.confirmation(one.folder, GPU) is None


@pytest.mark.parametrize("how", ["not measured", "no answer", "no library"])
def test_runs_are_taken_at_their_word_where_the_driver_does_not_measure(
    how: str, work: DriverWork, tmp_path: Path
) -> None:
    pair = [container(tmp_path / "one", 11), container(tmp_path / "two", 99)]
    if how == "no library":
        work._nvml = None
    elif how == "no answer":
        work._nvml.answers = False  # type: ignore[union-attr]
    else:
        work._nvml.said = None  # type: ignore[union-attr]
    work.look(pair, BEGIN)
    assert work.confirmation(pair[0].folder, GPU) is None
