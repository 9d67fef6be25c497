"""`python -m bench.agent.hostile`: what a container can do to its node by its `usage` file; prints the table.

Two containers are attended to as by an agent, while processes of one of them try to enlarge its file or to hold it, and
another program writes files of 16 MiB to the disk of the node. Each file system is a small one of its own: ext4 on a
loop device, and tmpfs. `bounded` has the files of containers on a tmpfs of their own, as `lamina mount-files` makes it.
`usage` is the most that the file took. Needs root; a file system that cannot be mounted is left out, with the reason.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.program import end_with
from lamina.agent.containers.file_mount import provide_mount, provide_reserve
from lamina.agent.limits.arbitration import BUSY_S, LOOK_S, REST
from lamina.core.grants import ComputePolicy
from lamina.enforcement import DeviceLimit, Limits, write_container
from lamina.enforcement.arbitration import Arbitration
from lamina.enforcement.reserve import fill_reserve
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mounts import LinuxMounts

DISK_MIB, FILES_MIB, WRITTEN_MIB = 2048, 32, 16

FALLOCATE = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
while True:
    for size in (1 << 40, max(0, os.statvfs(sys.argv[1]).f_bavail * 4096 - (4 << 20)), 64 << 20, 4096):
        try:
            os.posix_fallocate(file, os.fstat(file).st_size, size)
        except OSError:
            pass
"""
PWRITE = """
import os, sys
file, block = os.open(sys.argv[1], os.O_RDWR), bytes(int(sys.argv[2]))
while True:
    try:
        os.pwrite(file, block, os.fstat(file).st_size)
    except OSError:
        pass
"""
HOLES = """
import ctypes, os, sys
file, libc = os.open(sys.argv[1], os.O_RDWR), ctypes.CDLL(None)
while True:
    libc.fallocate(file, 3, ctypes.c_long(0), ctypes.c_long(os.fstat(file).st_size))
    try:
        os.ftruncate(file, 1 << 40)
        os.pwrite(file, bytes(1 << 20), 1 << 39)
    except OSError:
        pass
"""
ATTACKS: dict[str, list[tuple[str, ...]]] = {
    "none": [],
    "fallocate": [(FALLOCATE,)],
    "pwrite 1 GiB": [(PWRITE, str(1 << 30))],
    "pwrite 1 MiB": [(PWRITE, str(1 << 20))],
    "holes": [(HOLES,)],
    "8 processes": [(PWRITE, str(400 << 20))] * 8,
}


class Outcome(NamedTuple):
    """What another program's writes came to, and how the ticks for the honest container went."""

    written: int
    refused: int
    ticks: int
    slowest_ms: list[float]
    most_mib: int
    """The most that `usage` took."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.agent.hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="for each attack (default 8)")
    options = parser.parse_args()
    columns = f"{'disk':6} {'files':8} {'attack':13} {'writes ok':>9} {'ENOSPC':>6} {'ticks':>6} {'usage':>9}"
    print(f"{columns}  slowest ticks, ms")
    for kind, bounded in ((kind, bounded) for kind in ("ext4", "tmpfs") for bounded in (False, True)):
        for attack, programs in ATTACKS.items():
            try:
                found = outcome(kind, programs, options.seconds, bounded=bounded)
            except Outside as error:
                print(f"{kind:6} left out: {error}")
                break
            slowest = ", ".join(f"{ms:.0f}" for ms in found.slowest_ms)
            where = "bounded" if bounded else "on disk"
            row = f"{kind:6} {where:8} {attack:13} {found.written:9} {found.refused:6} {found.ticks:6}"
            print(f"{row} {found.most_mib:5} MiB  {slowest}", flush=True)
    return 0


def outcome(kind: str, programs: list[tuple[str, ...]], seconds: float, *, bounded: bool) -> Outcome:
    """Attack for so long. Raises Outside where the file system cannot be mounted."""
    with ExitStack() as stack:
        disk = stack.enter_context(mounted(kind, DISK_MIB if kind == "ext4" else 256))
        files = disk / "containers"
        files.mkdir()
        if bounded:
            asyncio.run(provide_mount(files, FILES_MIB, LinuxMounts(), Files()))
            provide_reserve(files, LinuxMounts())
            stack.callback(_run, "umount", "--lazy", str(files))
        folders = [files / name for name in ("honest", "hostile")]
        for folder in folders:
            folder.mkdir()
            uuid = "GPU-00000000-0000-0000-0000-000000000000"
            gpu = DeviceLimit(uuid=uuid, memory_bytes=1 << 30, cores_percent=50, compute_policy=ComputePolicy.WEIGHT)
            write_container(folder, Limits(devices=(gpu,)))
        usage = folders[1] / "usage"
        for program, *arguments in programs:
            process = subprocess.Popen([sys.executable, "-c", program, usage, *arguments])
            stack.callback(process.wait)
            stack.callback(process.kill)
        writer = subprocess.Popen([sys.executable, "-c", WRITER, disk / "other"], stdout=subprocess.PIPE, text=True)
        stack.callback(writer.kill)
        ticks, slowest, most = attended(folders, usage, seconds)
        writer.terminate()
        written, refused = map(int, (writer.communicate()[0] or "0 0").split())
        return Outcome(written, refused, ticks, slowest, most)


WRITER = f"""
import os, signal, sys, time
counts = [0, 0]
def end(*_):
    print(*counts, flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
block = bytes({WRITTEN_MIB} << 20)
while True:
    try:
        file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        done = 0
        while done < len(block):
            done += os.write(file, memoryview(block)[done:])
        counts[0] += 1
    except OSError:
        counts[1] += 1
    os.close(file)
    os.unlink(sys.argv[1])
    time.sleep(0.05)
"""
"""A program of the node that writes files."""


def attended(folders: list[Path], usage: Path, seconds: float) -> tuple[int, list[float], int]:
    """Attend as an agent does. Returns how many ticks, the slowest, and the most of `usage` in MiB."""
    arbitration, took, most = Arbitration(), [], 0
    end, listed = time.monotonic() + seconds, 0.0
    while (now := time.monotonic()) < end:
        if now - listed >= LOOK_S:
            arbitration.attend(folders)
            fill_reserve(usage.parent.parent)
            listed = now
        arbitration.tick(int(now * 1e9))
        took.append(time.monotonic() - now)
        most = max(most, usage.stat().st_blocks * 512)
        time.sleep(max(BUSY_S, REST * took[-1]))
    return len(took), sorted(each * 1000 for each in took)[-4:], most >> 20


@contextmanager
def mounted(kind: str, size_mib: int) -> Iterator[Path]:
    """A file system of its own. Raises Outside where this process may not mount one."""
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as name:
        folder, image = Path(name, "disk"), Path(name, "image")
        folder.mkdir()
        if kind == "ext4":
            with image.open("wb") as file:
                file.truncate(size_mib << 20)
            _run("mkfs.ext4", "-q", str(image))
            _run("mount", "-o", "loop", str(image), str(folder))
        else:
            _run("mount", "-t", kind, "-o", f"size={size_mib}m", "lamina", str(folder))
        try:
            yield folder
        finally:
            _run("umount", "--lazy", str(folder))


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Outside(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise Outside(" ".join(done.stderr.split()) or f"{command[0]} ended with {done.returncode}")


if __name__ == "__main__":
    end_with(main)
