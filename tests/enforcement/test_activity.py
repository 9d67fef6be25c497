"""What is read from a `usage` file that its tenants may fill with anything."""

import ctypes
import os
import time
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lamina.enforcement import DeviceLimit, Limits, layout, write_container
from lamina.enforcement.activity import WINDOW, Activity, activity, head_bytes, slots_used
from lamina.enforcement.arbiter import Arbiter, Tenant
from lamina.enforcement.arbitration import Arbitration
from lamina.model.grants import ComputePolicy

MS = layout.BIN_NS
NOW = (1 << 40) * 1000
UUID = "GPU-00000000-0000-0000-0000-000000000001"
HEAD, STRIDE = head_bytes(1), layout.slot_stride(1)


def tenant(name: str, doing: Activity) -> Tenant:
    return Tenant(name=name, share=0.5, policy=ComputePolicy.WEIGHT, priority=0, activity=doing)


def usage(now: int, bins: dict[int, tuple[int, int]], **stamps: int) -> tuple[bytes, bytes]:
    """The file of one process; `bins` tells brief and other us of milliseconds before now."""
    file, slot = layout.Usage(slots_used=1), layout.SlotDevice()
    for back, (brief, other) in bins.items():
        number = now // MS - back
        word = number << layout.BIN_SHIFT | brief << layout.BRIEF_SHIFT | other
        file.devices[0].compute.bins[number % layout.BINS] = word
    for name, value in stamps.items():
        setattr(slot.compute, name, value)
    return bytes(file)[:HEAD], bytes(ctypes.sizeof(layout.Slot)) + bytes(slot)


def test_bins_become_fractions_of_the_last_milliseconds() -> None:
    doing = activity(*usage(NOW, {0: (0, 500), 3: (250, 0), WINDOW: (900, 900)}), 0, 1, NOW)
    assert doing.worked[-1] == 0.5 and doing.brief[-4] == 0.25
    assert doing.worked.sum() == 0.5 and doing.brief.sum() == 0.25


def test_nothing_is_cheap_to_tell() -> None:
    assert not activity(*usage(NOW, {}), 0, 1, NOW).seen
    assert activity(*usage(NOW, {}, busy_since=NOW - MS), 0, 1, NOW).seen


def test_stamps_of_the_future_and_of_long_ago_are_none() -> None:
    later = activity(*usage(NOW, {}, busy_since=NOW + 1, asked_at=NOW + 1, waited_at=1 << 63), 0, 1, NOW)
    assert (later.busy_since, later.asked_at, later.waited_at) == ((), 0, 0)
    assert activity(*usage(NOW, {}, busy_since=NOW - 3_000 * MS), 0, 1, NOW).busy_since == ()


@given(st.randoms(use_true_random=False), st.integers(0, 3))
def test_garbage_is_only_a_lie_about_its_writer(random, slots: int) -> None:  # type: ignore[no-untyped-def]
    lies = {back: (random.getrandbits(12), random.getrandbits(16)) for back in range(random.randrange(WINDOW))}
    head = usage(NOW, lies)[0] if random.random() < 0.7 else random.randbytes(HEAD)
    liar = activity(head, random.randbytes(slots * STRIDE), 0, 1, NOW)
    honest = activity(*usage(NOW, dict.fromkeys(range(WINDOW), (1000, 0))), 0, 1, NOW)
    assert slots_used(head) <= layout.SLOTS
    assert liar.brief.min() >= 0 and liar.brief.max() <= 1
    assert all(0 < since <= NOW for since in liar.busy_since)
    decisions = Arbiter().tick(NOW, [tenant("liar", liar), tenant("honest", honest)])
    assert all(0.5 <= one.rate <= 1 for one in decisions.values())
    assert all(0 <= one.refund_ns <= WINDOW * MS for one in decisions.values())


BINS = st.dictionaries(st.integers(0, 40), st.tuples(st.integers(0, 1000), st.integers(0, 2000)), max_size=8)


@given(st.lists(st.tuples(st.integers(0, 60), BINS, BINS), min_size=1, max_size=5))
def test_what_did_not_change_is_reckoned_as_if_anew(steps: list[tuple[int, dict, dict]]) -> None:  # type: ignore[type-arg]
    arbiter, now = Arbiter(), NOW
    for later, one, other in steps:
        now += later * MS
        pair = [tenant(name, activity(*usage(now, bins), 0, 1, now)) for name, bins in (("a", one), ("b", other))]
        kept = arbiter._got([each for each in pair if each.activity.seen], now)
        anew = Arbiter()._got([each for each in pair if each.activity.seen], now)
        assert kept.keys() == anew.keys()
        assert all(np.allclose(kept[name], anew[name]) for name in kept)


def test_a_file_that_was_cut_off_is_left_alone_and_the_others_go_on(tmp_path: Path) -> None:
    limits = Limits(devices=(DeviceLimit(uuid=UUID, memory_bytes=1 << 20, context_bytes=0),))
    folders = [tmp_path / name for name in ("cut", "whole")]
    for folder in folders:
        folder.mkdir()
        write_container(folder, limits)
    arbitration = Arbitration()
    arbitration.attend(folders)
    os.truncate(folders[0] / "usage", 100)
    now = time.monotonic_ns()
    assert arbitration.tick(now) is False
    beats = [layout.Arbiter.from_buffer_copy((folder / "arbiter").read_bytes()).heartbeat for folder in folders]
    assert beats == [0, now]
    arbitration.close()
