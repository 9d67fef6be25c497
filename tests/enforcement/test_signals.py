"""Whose signals a container heeds: links that show one file of a neighbor, and what becomes of a bad one."""

import os
import time
from pathlib import Path

import pytest

from lamina.enforcement import DeviceLimit, Limits, layout, write_container
from lamina.enforcement.arbitration import Arbitration
from lamina.enforcement.neighbors import MOST_PAUSE_NS, HeededNeighbor, Neighbors
from tests.enforcement.gpu_uuids import UUID
from tests.enforcement.leases import lease
from tests.waiting import wait_until

WORKING = layout.SignalFile.working.offset
SIZE = 128


def made(root: Path, name: str, priority: int = 1, gpus: int = 1) -> Path:
    folder = root / name
    folder.mkdir()
    devices = tuple(DeviceLimit(uuid=UUID.format(gpu), memory_bytes=1 << 30) for gpu in range(gpus))
    write_container(folder, Limits(devices=devices, priority=priority))
    return folder


def heeded(folder: Path, device: int = 0) -> list[tuple[int, int, int]]:
    """Link, device and pause in us of each word before the first 0."""
    words = list(layout.ArbiterFile.from_buffer_copy((folder / "arbiter").read_bytes()).heeded[device].signals)
    found = words[: words.index(0)] if 0 in words else words
    return [(word & 0xFFFFFF, word >> 24 & 0xFF, word >> 32) for word in found]


def links(folder: Path) -> set[str]:
    return {link.name for link in (folder / "neighbors").iterdir()}


def set_working(folder: Path, bits: int) -> None:
    with (folder / "signal").open("r+b") as file:
        os.pwrite(file.fileno(), bits.to_bytes(4, "little"), WORKING)


def working(folder: Path) -> int:
    return int(layout.SignalFile.from_buffer_copy((folder / "signal").read_bytes()).working[0])


def test_a_low_priority_heeds_the_signal_of_a_high_one(tmp_path: Path) -> None:
    low, high = made(tmp_path, "low"), made(tmp_path, "high", priority=0)
    arbitration = Arbitration()
    arbitration.attend((low, high))
    arbitration.tick(time.monotonic_ns())
    ((link, device, pause),) = heeded(low)
    assert (device, pause, heeded(high)) == (0, 0, [])
    assert links(low) == {str(link)} and links(high) == set()
    assert (low / "neighbors" / str(link)).samefile(high / "signal")
    arbitration.tick(time.monotonic_ns())
    assert heeded(low) == [(link, 0, 0)], "a program that has mapped it need not do so again"
    arbitration.attend((low,))
    arbitration.tick(time.monotonic_ns())
    assert heeded(low) == [] and links(low) == set()
    arbitration.close()


def test_an_agent_that_starts_again_removes_the_links_of_the_one_before(tmp_path: Path) -> None:
    low, high = made(tmp_path, "low"), made(tmp_path, "high", priority=0)
    for _ in range(2):
        arbitration = Arbitration()
        arbitration.attend((low, high))
        arbitration.tick(time.monotonic_ns())
        assert links(low) == {str(link) for link, _, _ in heeded(low)} and len(links(low)) == 1
        arbitration.close()


@pytest.mark.parametrize("pause_ns", [0, 999, 1000, MOST_PAUSE_NS, MOST_PAUSE_NS + 1, (1 << 64) - 1])
def test_a_pause_is_bounded_whatever_a_container_says(tmp_path: Path, pause_ns: int) -> None:
    low, high = made(tmp_path, "low"), made(tmp_path, "high")
    (word,) = Neighbors(low).words([HeededNeighbor(high, 15, pause_ns)])
    assert word >> 32 == min(pause_ns, MOST_PAUSE_NS) // 1000
    assert word >> 24 & 0xFF == 15


def test_no_more_are_heeded_than_there_are_words(tmp_path: Path) -> None:
    low = made(tmp_path, "low")
    others = [HeededNeighbor(made(tmp_path, f"high{number}"), 0, 0) for number in range(layout.HEEDED + 2)]
    assert len(Neighbors(low).words(others)) == layout.HEEDED


@pytest.mark.parametrize("kind", ["no signal", "no directory"])
def test_a_signal_that_cannot_be_linked_is_left_out(tmp_path: Path, kind: str) -> None:
    low, high = made(tmp_path, "low"), made(tmp_path, "high")
    if kind == "no directory":
        (low / "neighbors").rmdir()
    else:
        (high / "signal").unlink()
    assert Neighbors(low).words([HeededNeighbor(high, 0, 0)]) == []


def test_the_bits_of_a_killed_process_are_cleared(tmp_path: Path) -> None:
    one = made(tmp_path, "one")
    arbitration = Arbitration()
    arbitration.attend((one,))
    set_working(one, 5)
    arbitration.tick(time.monotonic_ns())
    assert working(one) == 0
    arbitration.close()


@pytest.mark.parametrize("size", [0, 1, WORKING, SIZE - 1])
def test_a_signal_that_is_cut_off_sets_its_container_alone_aside(tmp_path: Path, size: int) -> None:
    one, other = made(tmp_path, "one"), made(tmp_path, "other")
    said: list[str] = []
    arbitration = Arbitration(report=lambda folder, what: said.append(f"{folder.name}: {what}"))
    arbitration.attend((one, other))
    os.truncate(one / "signal", size)
    arbitration.tick(time.monotonic_ns())
    assert said == ["one: its files cannot be used: a process has cut off its signal file"]
    assert [each.folder for each in arbitration.containers] == [other]
    arbitration.close()


def test_a_signal_that_has_grown_is_restored(tmp_path: Path) -> None:
    one = made(tmp_path, "one")
    said: list[str] = []
    arbitration = Arbitration(report=lambda folder, what: said.append(what))
    arbitration.attend((one,))
    os.truncate(one / "signal", 1 << 20)
    (one / "signal").chmod(0o4777)
    arbitration.tick(time.monotonic_ns())
    assert said == ["a process changed the size and mode of its signal file; it is restored"]
    wait_until(lambda: (one / "signal").stat().st_size == SIZE, "the size stays")
    wait_until(lambda: (one / "signal").stat().st_mode & 0o7777 == 0o666, "the mode stays")
    arbitration.close()


def test_a_lease_on_a_signal_stops_no_other(tmp_path: Path) -> None:
    one, other = made(tmp_path, "one"), made(tmp_path, "other")
    said: list[str] = []
    with lease(one / "signal") as taken:
        assert taken == "leased"
        arbitration = Arbitration(report=lambda folder, what: said.append(folder.name))
        arbitration.attend((one, other))
        assert said == ["one"] and [each.folder for each in arbitration.containers] == [other]
        arbitration.close()


def test_who_only_reads_a_container_leaves_its_links(tmp_path: Path) -> None:
    """As one run of `lamina run` does with the others."""
    low, high = made(tmp_path, "low"), made(tmp_path, "high", priority=0)
    writer, reader = Arbitration(), Arbitration()
    writer.attend((low, high))
    writer.tick(time.monotonic_ns())
    before = links(low)
    reader.attend((low, high), writing=lambda folder: False)
    reader.tick(time.monotonic_ns())
    assert links(low) == before != set()
    writer.close()
    reader.close()
