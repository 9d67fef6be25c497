"""The parts of the soak with a hostile tenant, without a cluster: each finds what is wrong and nothing else."""

import mmap
from pathlib import Path
from random import Random

import pytest

from lamina.enforcement import layout
from lamina.enforcement.usage import new_usage, read_usage
from tests.cluster.hostile import program
from tests.cluster.hostile.components import MAX_MIB, Program, changes
from tests.cluster.hostile.fairness import MAX_WAIT, WARM_UP_S, WINDOW_S, Fairness, Work
from tests.cluster.hostile.tenant import LIMITS, WITHOUT_GPU, attack_pod

UUIDS = ("GPU-00000000-0000-0000-0000-000000000000",)
OWNER, NOW = 4711 | 5 << layout.PID_BITS, 10**12
CAPS = {"c": 20}


def courses(share: float, *, from_s: float = 0.0, until_s: float, step_s: float = 2.0) -> list[tuple[float, int]]:
    """Moments and the GPU time that a container with such a share has used by then."""
    count = int((until_s - from_s) / step_s) + 1
    return [(from_s + i * step_s, int((from_s + i * step_s + 1) * share * 1e7)) for i in range(count)]


@pytest.mark.parametrize("share", [17.1, 20, 22.9])
def test_a_share_within_three_points_is_fair(share: float) -> None:
    fairness = Fairness()
    for now, busy in courses(share, until_s=100):
        assert fairness.look(now, CAPS, {"c": Work(busy)}) == []
    assert fairness.windows == 4
    assert fairness.worst == pytest.approx(abs(share - 20), abs=0.01)


@pytest.mark.parametrize("share", [0.5, 16.9, 23.1, 100])
def test_any_other_share_is_found_once_in_each_window(share: float) -> None:
    fairness, found = Fairness(), []
    for now, busy in courses(share, until_s=2 * WINDOW_S + WARM_UP_S):
        found += fairness.look(now, CAPS, {"c": Work(busy)})
    assert found == [f"container c got {share:.1f} % of its GPU's time in 20 s for 20 %"] * 2


def test_what_cannot_be_compared_says_nothing() -> None:
    """Containers without a cap here, those that have not worked yet, and windows in which a process came or went."""
    fairness = Fairness()
    for now, busy in courses(90, until_s=60):
        assert fairness.look(now, {}, {"c": Work(busy)}) == []
        assert fairness.look(now, {"idle": 20}, {"idle": Work(0)}) == []
        assert fairness.look(now, {"d": 20}, {"d": Work(busy, processes=1 + int(now / 10) % 2)}) == []
        assert fairness.look(now, {"e": 20}, {"e": Work(busy % 10**10)}) == []
    assert fairness.windows == 0


def test_work_that_waited_for_a_core_is_not_missed() -> None:
    """But nothing explains more work than the cap."""
    little, late, much = Fairness(), Fairness(), Fairness()
    for now, busy in courses(5, until_s=WARM_UP_S + WINDOW_S):
        found = little.look(now, CAPS, {"c": Work(busy, waited_ns=int(now * 1e9 * MAX_WAIT * 0.99))})
        assert late.look(now, CAPS, {"c": Work(busy, waited_ns=int(now * 1e9 * MAX_WAIT * 1.01))}) == []
    for now, busy in courses(90, until_s=WARM_UP_S + WINDOW_S):
        found += much.look(now, CAPS, {"c": Work(busy, waited_ns=int(now * 1e9))})
    assert [sentence.split()[3] for sentence in found] == ["5.0", "90.0"]
    assert (little.windows, late.windows, much.windows) == (1, 0, 1)


def test_a_container_that_is_gone_is_forgotten() -> None:
    fairness = Fairness()
    for now, busy in courses(20, until_s=WARM_UP_S + 4):
        fairness.look(now, CAPS, {"c": Work(busy)})
    fairness.look(12, CAPS, {})
    assert fairness.look(WARM_UP_S + WINDOW_S + 4, CAPS, {"c": Work(10**12)}) == []


BEFORE = {"controller": Program(1, 100), "agent of n": Program(2, 50)}


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (BEFORE, []),
        ({**BEFORE, "controller": Program(1, MAX_MIB["controller"])}, []),
        ({**BEFORE, "controller": Program(1, MAX_MIB["controller"] + 1)}, ["controller takes 601 MiB, more than 600"]),
        ({**BEFORE, "controller": Program(3, 100)}, ["controller has started again"]),
        ({**BEFORE, "agent of n": Program(None, 0)}, ["agent of n has ended"]),
    ],
)
def test_changes_of_components(now: dict[str, Program], found: list[str]) -> None:
    assert changes(BEFORE, now) == found


def test_a_claim_is_read_as_one(tmp_path: Path) -> None:
    """The program knows where the words of `usage` are, so its lies reach those who read them."""
    path = tmp_path / "usage"
    path.write_bytes(new_usage(UUIDS, 1).ljust(layout.usage_bytes(len(UUIDS)), b"\0"))
    with path.open("r+b") as file:
        usage = mmap.mmap(file.fileno(), 0)
        start = next(program.slots(usage))
        usage[start : start + 8] = OWNER.to_bytes(8, "little")
        program.claim(usage, NOW)
        program.claim(usage, NOW)
        usage.flush()
        slot = layout.Slot.from_buffer_copy(usage, start)
        device = layout.SlotDevice.from_buffer_copy(usage, start + layout.ctypes.sizeof(layout.Slot))
    assert slot.owner == OWNER
    assert (device.compute.asked_at, device.compute.busy_ns) == (NOW, 100 * 10**6)
    assert len(read_usage(path).processes) == program.CLAIMED_SLOTS


def test_every_attack_is_tried_and_only_two_request_no_gpu() -> None:
    random = Random(1)
    pods = [attack_pod(random, number) for number in range(200)]
    found = {each["metadata"]["labels"]["attack"]: each["spec"]["containers"][0] for each in pods}
    assert set(found) == set(program.ATTACKS)
    assert {name for name, each in found.items() if each["resources"]["limits"] != LIMITS} == set(WITHOUT_GPU)
    assert all(each["command"][:2] == ["hostile", name] for name, each in found.items())
