"""What is read from a `usage` file that its tenants may fill with anything."""

import ctypes

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from lamina.core.grants import ComputePolicy
from lamina.enforcement import layout
from lamina.enforcement.activity import MAX_PROCESSES, WINDOW, Activity, Reading, activities, slots_read
from lamina.enforcement.arbiter import Arbiter, Tenant
from lamina.enforcement.usage_arrays import head_bytes

MS = layout.BIN_NS
NOW = (1 << 40) * 1000
HEAD, STRIDE = head_bytes(1), layout.slot_stride(1)


def tenant(name: str, doing: Activity) -> Tenant:
    return Tenant(name=name, share=0.5, policy=ComputePolicy.WEIGHT, priority=0, activity=doing)


def activity(head: bytes, slots: bytes, now: int) -> Activity:
    """That of one container on its one device."""
    ((found,),) = activities([Reading(head, slots)], 1, now)
    return found


def usage(now: int, bins: dict[int, tuple[int, int]], **stamps: int) -> tuple[bytes, bytes]:
    """The file of one process; `bins` tells brief and other us of milliseconds before now."""
    file, slot = layout.UsageFile(slots_used=1), layout.SlotDevice()
    for back, (brief, other) in bins.items():
        number = now // MS - back
        word = number << layout.BIN_SHIFT | brief << layout.BRIEF_SHIFT | other
        file.devices[0].compute.bins[number % layout.BINS] = word
    for name, value in stamps.items():
        setattr(slot.compute, name, value)
    return bytes(file)[:HEAD], bytes(ctypes.sizeof(layout.Slot)) + bytes(slot)


def test_bins_become_fractions_of_the_last_milliseconds() -> None:
    doing = activity(*usage(NOW, {0: (0, 500), 3: (250, 0), WINDOW: (900, 900)}), NOW)
    assert doing.worked[-1] == 0.5 and doing.brief[-4] == 0.25
    assert doing.worked.sum() == 0.5 and doing.brief.sum() == 0.25


def test_an_idle_container_is_cheap_to_read() -> None:
    assert not activity(*usage(NOW, {}), NOW).active
    assert activity(*usage(NOW, {}, busy_since=NOW - MS), NOW).active


def test_stamps_of_the_future_and_of_long_ago_are_none() -> None:
    later = activity(*usage(NOW, {}, busy_since=NOW + 1, asked_at=NOW + 1, waited_at=1 << 63), NOW)
    assert (later.busy, later.asked_at, later.waited_at) == (False, 0, 0)
    assert activity(*usage(NOW, {}, busy_since=NOW - 3_000 * MS), NOW).busy is False


@given(st.randoms(use_true_random=False), st.integers(0, 3))
def test_garbage_is_only_a_lie_about_its_writer(random, slots: int) -> None:  # type: ignore[no-untyped-def]
    lies = {back: (random.getrandbits(12), random.getrandbits(16)) for back in range(random.randrange(WINDOW))}
    head = usage(NOW, lies)[0] if random.random() < 0.7 else random.randbytes(HEAD)
    liar = activity(head, random.randbytes(slots * STRIDE), NOW)
    honest = activity(*usage(NOW, dict.fromkeys(range(WINDOW), (1000, 0))), NOW)
    assert slots_read(head) <= MAX_PROCESSES
    assert liar.brief.min() >= 0 and liar.brief.max() <= 1
    assert (np.diff(liar.unfinished) >= 0).all() and 0 <= liar.unfinished[-1] <= slots
    decisions = Arbiter().tick(NOW, [tenant("liar", liar), tenant("honest", honest)])
    assert all(0.5 <= one.rate <= 1 for one in decisions.values())
    assert all(0 <= one.refund_ns <= WINDOW * MS for one in decisions.values())


BINS = st.dictionaries(st.integers(0, 40), st.tuples(st.integers(0, 1000), st.integers(0, 2000)), max_size=8)


@given(st.lists(st.tuples(st.integers(0, 60), BINS, BINS), min_size=1, max_size=5))
def test_unchanged_bins_give_the_same_result_as_a_new_arbiter(steps: list[tuple[int, dict, dict]]) -> None:  # type: ignore[type-arg]
    arbiter, now = Arbiter(), NOW
    for later, one, other in steps:
        now += later * MS
        pair = [tenant(name, activity(*usage(now, bins), now)) for name, bins in (("a", one), ("b", other))]
        kept = arbiter._got([each for each in pair if each.activity.active], now)
        again = Arbiter()._got([each for each in pair if each.activity.active], now)
        assert kept.keys() == again.keys()
        assert all(
            np.allclose(a, b) for name in kept for a, b in zip(astuple(kept[name]), astuple(again[name]), strict=True)
        )


SLOTS = st.lists(st.tuples(st.integers(0, 3_000), st.integers(-5, 200), st.integers(-5, 200)), max_size=6)


def slot(now: int, stamps: tuple[int, int, int], devices: int) -> bytes:
    """One process with stamps so many milliseconds ago, the same on each device."""
    word, since = layout.SlotDevice(), [now - back * MS if back else 0 for back in stamps]
    word.compute.busy_since, word.compute.asked_at, word.compute.waited_at = since
    return bytes(ctypes.sizeof(layout.Slot)) + bytes(word) * devices


@given(st.lists(SLOTS, min_size=1, max_size=4), st.integers(1, 3))
def test_containers_are_told_apart_and_their_processes_counted(containers: list[list], devices: int) -> None:  # type: ignore[type-arg]
    head = bytes(head_bytes(devices))
    readings = [Reading(head, b"".join(slot(NOW, each, devices) for each in slots)) for slots in containers]
    found = activities(readings, devices, NOW)
    assert [len(each) for each in found] == [devices] * len(containers)
    for slots, several in zip(containers, found, strict=True):
        past = [tuple(back if back >= 0 else 0 for back in each) for each in slots]
        working = [busy for busy, _, _ in past if 0 < busy < 2_000]
        expected = [sum(busy >= back for busy in working) for back in range(WINDOW - 1, -1, -1)]
        latest = [min((each[i] for each in past if each[i]), default=0) for i in (1, 2)]
        for one in several:
            assert one.unfinished.tolist() == [float(count) for count in expected] and one.busy is bool(working)
            assert [one.asked_at, one.waited_at] == [NOW - back * MS if back else 0 for back in latest]
