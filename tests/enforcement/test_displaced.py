"""Which container the arbitration names for a GPU whose memory is lent beyond what it has: the youngest borrower."""

import ctypes
import time
from pathlib import Path

from lamina.enforcement import DeviceLimit, Limits, layout, write_container
from lamina.enforcement.arbitration import Arbitration, confirmed
from lamina.enforcement.driver_figures import UNCONFIRMED, Confirmation
from lamina.enforcement.memory_loans import Lender, MemoryHolder
from tests.enforcement.gpu_uuids import UUID

GIB = 1 << 30
GPU = UUID.format(1)


def container(root: Path, name: str, request: int) -> Path:
    folder = root / name
    folder.mkdir()
    limit = DeviceLimit(uuid=GPU, memory_bytes=16 * GIB, request_bytes=request * GIB)
    write_container(folder, Limits(devices=(limit,)))
    return folder


def hold(folder: Path, gib: int) -> None:
    """A process of the container says that it holds so much."""
    path = folder / "usage"
    with path.open("r+b") as file:
        file.seek(layout.UsageFile.slots_used.offset)
        file.write((1).to_bytes(4, "little"))
        file.seek(ctypes.sizeof(layout.UsageFile) + ctypes.sizeof(layout.Slot) + layout.SlotDevice.bytes.offset)
        file.write((gib * GIB).to_bytes(8, "little"))


def test_the_youngest_that_has_to_return_memory_is_named(tmp_path: Path) -> None:
    arbitration = Arbitration(capacity=lambda uuid: 16 * GIB)
    old, young = container(tmp_path, "z", 4), container(tmp_path, "a", 4)
    needs = container(tmp_path, "needs", 8)
    arbitration.attend((old, young, needs))
    hold(old, 8)
    hold(young, 8)
    arbitration.tick(time.monotonic_ns())
    assert arbitration.displaced == {}, "the GPU has room for all"
    hold(needs, 2)
    arbitration.tick(time.monotonic_ns())
    assert arbitration.displaced == {GPU: young}
    hold(needs, 8)
    arbitration.tick(time.monotonic_ns())
    assert arbitration.displaced == {GPU: young}, "both return memory, and the youngest is named"
    hold(young, 0)
    hold(needs, 8)
    now = time.monotonic_ns()
    arbitration.tick(now)
    arbitration.tick(now + 2_000_000_000)
    assert arbitration.displaced == {}
    arbitration.close()
    assert arbitration.displaced == {}


def test_a_container_without_a_process_on_the_gpu_displaces_none(tmp_path: Path) -> None:
    """It is the older one, and says that it holds all of its limit."""
    said = {"liar": Confirmation(0, 0.0, memory=0), "honest": Confirmation(1, 0.0, memory=12 * GIB)}
    arbitration = Arbitration(capacity=lambda uuid: 16 * GIB, confirm=lambda folder, uuid: said[folder.name])
    liar, honest = container(tmp_path, "liar", 1), container(tmp_path, "honest", 4)
    arbitration.attend((liar, honest))
    hold(liar, 16)
    hold(honest, 12)
    arbitration.tick(time.monotonic_ns())
    assert arbitration.displaced == {GPU: liar}, "its word counts against itself alone"
    said["liar"] = Confirmation(1, 0.0, memory=8 * GIB)
    arbitration.tick(time.monotonic_ns())
    assert arbitration.displaced == {GPU: honest}, "the driver lists it with 8 GiB"
    arbitration.close()


def test_containers_of_one_pod_have_its_figure_once() -> None:
    def one(name: str, held: int) -> MemoryHolder:
        return MemoryHolder(name=name, guaranteed=1, limit=100, held=held)

    of_pod = Confirmation(2, 0.0, owner="pod", memory=10)
    holders = [one("a", 8), one("b", 8), one("c", 8), one("d", 8)]
    found = confirmed(holders, [of_pod, of_pod, Confirmation(0, 0.0, memory=0), UNCONFIRMED], Lender())
    assert [(each.listed, each.unlisted, each.trusted) for each in found] == [
        (8, 0, True),
        (2, 6, True),
        (0, 0, True),
        (None, 0, False),
    ]
