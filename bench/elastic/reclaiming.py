"""How long a container waits for 10 GiB that are guaranteed to it while a neighbor has borrowed all that was free."""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Event, Thread

from bench.machine import CONTEXT_MIB, MIB, MODEL, Bench, workers
from bench.measures import Report
from lamina.core.cards import card
from lamina.enforcement import DeviceLimit, Limits, environment, write_container
from lamina.enforcement.arbitration import Arbitration
from lamina_lab import simgpu

NEEDED_MIB, TIMES, FAILED_MS = 10 * 1024, 5, 60_000.0
ROUNDING_MIB = 64
ALL_MIB = card(MODEL).memory_mib
GUARANTEED_MIB = NEEDED_MIB + 4 * CONTEXT_MIB
PROGRAM = """
import ctypes, sys, time
cuda, context, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
print("ready", flush=True)
for line in sys.stdin:
    begun = time.monotonic()
    code = cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(int(line) << 20))
    print(code, (time.monotonic() - begun) * 1000, flush=True)
"""


def measure_reclaiming(report: Report, bench: Bench, program: Path) -> None:
    """With a borrower, and with one that holds as much by a limit of its own, which no one takes back."""
    del program
    report.add("reclaim-10-gib", "ms", ours=median(_wait_ms(bench, lent=True) for _ in range(TIMES)))
    report.control("reclaim-10-gib", "ms", ours=_wait_ms(bench, lent=False))


def _container(bench: Bench, memory_mib: int, request_mib: int = 0) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="container-", dir=bench.folder))
    limit = DeviceLimit(
        uuid=bench.uuid,
        memory_bytes=memory_mib * MIB,
        request_bytes=request_mib * MIB,
        context_bytes=CONTEXT_MIB * MIB,
    )
    write_container(folder, Limits(devices=(limit,)))
    return folder


def _wait_ms(bench: Bench, *, lent: bool) -> float:
    """`FAILED_MS` where the neighbor does not get its memory."""
    rest = ALL_MIB - GUARANTEED_MIB
    borrower = _container(bench, ALL_MIB, rest) if lent else _container(bench, ALL_MIB)
    neighbor = _container(bench, GUARANTEED_MIB)
    command = [sys.executable, "-c", PROGRAM]
    with (
        _lending(borrower, neighbor),
        workers(1, command, _variables(bench, borrower)) as [first],
        workers(1, command, _variables(bench, neighbor)) as [second],
    ):
        for mib in (rest - 2 * CONTEXT_MIB, GUARANTEED_MIB - ROUNDING_MIB):
            first.say(str(mib))
            if (answer := first.receive()).split()[0] != "0":
                raise RuntimeError(f"the borrower does not get {mib} MiB: {answer}")
        second.say(str(NEEDED_MIB))
        code, took = second.receive().split()
    return float(took) if code == "0" else FAILED_MS


def _variables(bench: Bench, container: Path) -> dict[str, str]:
    base = {"SIMGPU_MACHINE": str(bench.folder / "machine"), "PATH": "/usr/bin:/bin"}
    return environment(container, simgpu.driver_folder(), base)


@contextmanager
def _lending(*folders: Path) -> Iterator[None]:
    """What the agent does, in a thread."""
    ended, begun = Event(), Event()

    def decide() -> None:
        arbitration = Arbitration(capacity=lambda uuid: ALL_MIB * MIB)
        arbitration.attend(folders)
        while not ended.wait(0.01):
            arbitration.tick(time.monotonic_ns())
            begun.set()

    thread = Thread(target=decide, daemon=True)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        ended.set()
        thread.join()
