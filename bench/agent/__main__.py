"""`python -m bench.agent`: the arbiter's tick; prints the table, writes the file, ends with 1 when a floor breaks."""

import argparse
import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from bench.measures import Report, add_outputs
from bench.parts import Part
from bench.program import add_parts, chosen, end_with
from lamina.core.grants import ComputePolicy
from lamina.enforcement import DeviceLimit, Limits, activity, layout, write_container
from lamina.enforcement.arbitration import Arbitration
from lamina.enforcement.driver_figures import Confirmation

CONTAINERS, GPUS = 64, 8
PARTS = {"tick": Part(about="CPU time of the arbiter's tick over 64 containers", smallest=("--rounds", "1"))}
SIZE = layout.usage_bytes(1)
CONFIRMED = Confirmation(processes=2, work=0.1)
"""What the driver says of each container."""
_RANDOM = np.random.default_rng(1)


def containers(root: Path) -> list[Path]:
    """Directories of containers with one GPU each, of two priorities."""
    folders = [root / str(number) for number in range(CONTAINERS)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        gpu = DeviceLimit(
            uuid=f"GPU-00000000-0000-0000-0000-{number % GPUS:012d}",
            memory_bytes=1 << 30,
            cores_percent=10,
            compute_policy=ComputePolicy.WEIGHT,
        )
        write_container(folder, Limits(devices=(gpu,), priority=number // GPUS % 2))
    return folders


def honest(now: int) -> bytes:
    """One process that has worked all the time and still does."""
    return _content(now, used=1, stamps=np.full(1, now - 50_000_000), work=np.full(layout.BINS, 900))


def garbage(now: int) -> bytes:
    """As many processes as there are slots and more, all at work since some recent moment, and random work."""
    stamps = now - _RANDOM.integers(0, 100_000_000, layout.SLOTS)
    return _content(
        now, used=(1 << 32) - 1, stamps=stamps, work=_RANDOM.integers(0, 1 << layout.BIN_SHIFT, layout.BINS)
    )


def _content(now: int, *, used: int, stamps: "np.ndarray[tuple[int], np.dtype[np.int64]]", work: object) -> bytes:
    record = layout.UsageFile(slots_used=used)
    numbers = np.arange(now // layout.BIN_NS - layout.BINS + 1, now // layout.BIN_NS + 1)
    bins = np.zeros(layout.BINS, np.int64)
    bins[numbers % layout.BINS] = numbers << layout.BIN_SHIFT | work
    record.devices[0].compute.bins[:] = bins.tolist()
    slots = np.zeros((layout.SLOTS, layout.slot_stride(1) // 8), np.int64)
    first = (ctypes.sizeof(layout.Slot) + layout.SlotDevice.compute.offset) // 8
    slots[: len(stamps), first : first + 3] = stamps[:, None]
    return (bytes(record) + slots.tobytes()).ljust(SIZE, b"\0")


def tick_ms(rounds: int, content: Callable[[int], bytes]) -> float:
    """CPU time of a tick after all containers have written this, the least of all rounds."""
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as root:
        folders = containers(Path(root))
        arbitration, taken = Arbitration(confirm=lambda folder, uuid: CONFIRMED), []
        arbitration.attend(folders)
        for _ in range(rounds):
            for folder in folders:
                file = os.open(folder / "usage", os.O_WRONLY)
                os.pwrite(file, content(time.monotonic_ns()), 0)
                os.close(file)
            began = time.process_time()
            arbitration.tick(time.monotonic_ns())
            taken.append((time.process_time() - began) * 1000)
        arbitration.close()
    return min(taken)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.agent", description=__doc__)
    add_parts(parser, PARTS)
    add_outputs(parser)
    parser.add_argument("--rounds", type=int, default=40, help="ticks of each kind (default 40)")
    options = parser.parse_args()
    chosen(parser, PARTS, options)
    report = Report("agent")
    report.add("tick-honest", "ms", ours=tick_ms(options.rounds, honest))
    report.add("tick-garbage", "ms", ours=tick_ms(options.rounds, garbage))
    with mock.patch.object(activity, "MAX_PROCESSES", layout.SLOTS):
        report.control("tick-garbage", "ms", ours=tick_ms(options.rounds, garbage))
    return report.finish(options.json, html=options.html)


if __name__ == "__main__":
    end_with(main)
