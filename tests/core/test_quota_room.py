"""What quotas leave is asked to the MiB and the percent, of pods and of each GPU."""

import pytest

from lamina.core.quota_room import QuotaLimit, QuotaRoom

MEMORY, CORES = QuotaLimit("q", "gpumem", 1000, 400), QuotaLimit("q", "gpucores", 100, 40)
ROOM = QuotaRoom(MEMORY, CORES)


@pytest.mark.parametrize(
    ("memory", "cores", "fits"), [(600, 60, True), (601, 60, False), (600, 61, False), (0, 0, True)]
)
def test_what_is_left_may_be_taken_and_no_more(memory: int, cores: int, fits: bool) -> None:
    assert ROOM.takes(memory, cores) is fits
    assert (ROOM.excess(memory, cores) == "") is fits
    assert QuotaRoom().takes(memory, cores)


def test_a_quota_that_is_exceeded_leaves_nothing_but_stops_no_pod_that_asks_nothing() -> None:
    beyond = QuotaRoom(QuotaLimit("q", "gpumem", 1000, 1400))
    assert beyond.memory is not None and beyond.memory.left == 0
    assert beyond.takes(0, 100) and not beyond.takes(1, 0)
    assert beyond.excess(1, 0) == "quota q allows 1000 of gpumem; 1400 are used and the pod requests 1"


def test_what_is_taken_leaves_less() -> None:
    assert ROOM.less(600, 59).takes(0, 1) and not ROOM.less(600, 59).takes(1, 1)
