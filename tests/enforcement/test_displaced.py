"""Which container the arbitration names for a GPU whose memory is lent beyond what it has: the youngest borrower."""

import ctypes
import time
from pathlib import Path

from lamina.enforcement import DeviceLimit, Limits, layout, write_container
from lamina.enforcement.arbitration import Arbitration
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
