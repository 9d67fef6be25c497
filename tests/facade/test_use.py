"""A container whose GPU time is not measured says that it uses the GPU: when it begins, and whenever it is asked."""

import time

from lamina.enforcement import layout
from lamina.enforcement.arbitration import Arbitration
from tests.facade.conftest import Container, MakeContainer
from tests.facade.running import WORK, running

AHEAD_NS = 2_000_000_000


def used_at(box: Container) -> int | None:
    return box.usage().devices[0].used_at_ns


def attention(box: Container) -> int:
    record = layout.ArbiterFile.from_buffer_copy((box.folder / "arbiter").read_bytes())
    return int(record.devices[0].attention)


def test_nothing_is_used_before_a_program_begins(container: MakeContainer) -> None:
    box = container(1000)
    assert used_at(box) == 0


def set_used_at(box: Container, ns: int) -> None:
    at = layout.UsageFile.devices.offset + layout.UsageDevice.compute.offset + layout.UsageCompute.used_at.offset
    with (box.folder / "usage").open("r+b") as file:
        file.seek(at)
        file.write(ns.to_bytes(8, "little"))


def test_a_launch_is_noted_when_the_container_is_asked_and_not_before(container: MakeContainer) -> None:
    box = container(1000)
    arbitration = Arbitration()

    def decide() -> None:
        """Ahead of time, for machines that are busy: a decision counts for a moment only."""
        arbitration.tick(time.monotonic_ns() + AHEAD_NS)

    with running(box, WORK) as tell:
        begun = used_at(box)
        assert begun and begun <= time.monotonic_ns()
        assert (tell("load()"), tell("launch()")) == (0, 0)
        first = used_at(box)
        assert first and first > begun
        arbitration.attend([box.folder])
        decide()
        assert attention(box) == 0, "it has just said so"
        assert tell("launch()") == 0 and used_at(box) == first
        set_used_at(box, 1)
        decide()
        assert (attention(box), used_at(box)) == (1, 1), "it is asked, and launches nothing"
        assert tell("launch()") == 0
        again = used_at(box)
        assert again and again > first
        decide()
        assert attention(box) == 0
        set_used_at(box, 0)
        decide()
        assert attention(box) == 0, "an earlier facade never answers"
    arbitration.close()
