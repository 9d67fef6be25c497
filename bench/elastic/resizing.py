"""What a resize costs: the call itself, and the work of a container that is resized again and again."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Event, Thread

from msgspec import structs

from bench.compute.runs import Load, given, started
from bench.machine import MIB, MODEL, Bench, workers
from bench.measures import Report
from lamina.core.cards import card
from lamina.enforcement import Limits, read_limits
from lamina.enforcement.files import LIMITS
from lamina.enforcement.live_limits import resize_container

CALLS, SECONDS, EVERY_S = 50, 4, 0.05


def measure_resizing(report: Report, bench: Bench, program: Path) -> None:
    """The call against a start of the program, which a change of the limits would take without it."""
    load = Load(cores=0, how="async")
    with started(bench, program, (load,)) as groups:
        folder = newest_container(bench)
        groups[0][0].say("go")
        report.add("resize-call", "ms", ours=median(_call_ms(folder, number) for number in range(CALLS)))
    report.control("resize-call", "ms", ours=_start_ms(bench, program))
    report.add("resize-work", "percent", native=_work(bench, program, None), ours=_work(bench, program, EVERY_S))
    restarted = _work_with_restarts(bench, program)
    report.control("resize-work", "percent", native=_work(bench, program, None), ours=restarted)


def newest_container(bench: Bench) -> Path:
    """The folder of the container that was made last."""
    return max(bench.folder.glob("container-*"), key=lambda folder: folder.stat().st_mtime_ns)


def resize(folder: Path, memory_mib: int) -> None:
    """Give the container in this folder another amount of memory."""
    limits = read_limits(folder / LIMITS)
    devices = tuple(structs.replace(device, memory_bytes=memory_mib * MIB) for device in limits.devices)
    resized = Limits(devices=devices, priority=limits.priority, log_level=limits.log_level)
    asyncio.run(resize_container(folder, resized, None))


def _call_ms(folder: Path, number: int) -> float:
    begun = time.monotonic_ns()
    resize(folder, card(MODEL).memory_mib - number % 2)
    return (time.monotonic_ns() - begun) / 1e6


def _start_ms(bench: Bench, program: Path) -> float:
    begun = time.monotonic_ns()
    with workers(1, [program, "async", "1000000", "1056"], bench.ours()):
        return (time.monotonic_ns() - begun) / 1e6


def _work(bench: Bench, program: Path, every_s: float | None) -> float:
    """The percent of the GPU's time that a container gets, which is resized so often."""
    with started(bench, program, (Load(cores=0, how="async"),)) as groups, _resized(bench, every_s):
        groups[0][0].say("go")
        bench.sleep(1)
        before = given(bench, groups)
        bench.sleep(SECONDS)
        after = given(bench, groups)
    return 100 * (after[1][0] - before[1][0]) / (after[0] - before[0])


@contextmanager
def _resized(bench: Bench, every_s: float | None) -> Iterator[None]:
    ended, folder = Event(), newest_container(bench)

    def run() -> None:
        number = 0
        while every_s is not None and not ended.wait(every_s):
            resize(folder, card(MODEL).memory_mib - number % 2)
            number += 1

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _work_with_restarts(bench: Bench, program: Path) -> float:
    """The same for a container that starts again each time instead, every 0.2 s."""
    worked, begun = 0, time.monotonic_ns()
    for _ in range(SECONDS):
        with started(bench, program, (Load(cores=0, how="async"),)) as groups:
            groups[0][0].say("go")
            bench.sleep(0.2)
            worked += given(bench, groups)[1][0]
    return 100 * worked / (time.monotonic_ns() - begun)
