"""What contexts cost in a container, where the driver lists processes by PIDs that they do not have themselves: the
agent tells them. The GPU is simulated; facade, agent and files are the real ones."""

import asyncio
import ctypes
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace as with_changes
from pathlib import Path
from threading import Event, Thread

import pytest
from msgspec.structs import replace

from lamina.agent.limits.arbitration import ArbitrationLoop
from lamina.enforcement import layout
from lamina.ports.clock import SystemClock
from lamina.ports.host import LinuxHost
from lamina.ports.nvml import FakeNvml, GpuProcess
from lamina_lab import simgpu
from tests.agent.node import fake_context
from tests.facade.conftest import CONTEXT, MIB, PRELUDE, Container, make_container
from tests.facade.pid_namespaces import NESTED, can_nest, line, running
from tests.waiting import canceled, wait_until

pytestmark = pytest.mark.skipif(not can_nest(), reason="this machine lets no one make pid namespaces")

POD = "1b6f0c1e-uid"
REPORT = "print(begin(), free(), flush=True)\nfor line in sys.stdin: print(eval(line), flush=True)"


class ListingNvml(FakeNvml):
    """Lists the processes of a simulated machine, by their PIDs outside of the container."""

    def __init__(self, machine: Path) -> None:
        super().__init__()
        self._machine = machine

    async def processes(self, uuid: str) -> tuple[GpuProcess, ...]:
        (gpu,) = simgpu.read(self._machine).gpus
        return tuple(GpuProcess(each.pid, each.memory_mib * MIB) for each in gpu.processes)


class PodHost(LinuxHost):
    """A process with the container's environment is in the cgroup of its pod."""

    def process_cgroups(self, pid: int) -> str:
        try:
            inside = f"LAMINA_DIR={self.folder}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return ""
        return f"0::/kubepods/besteffort/pod{POD}/4f3c" if inside else "0::/system.slice"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder


class Setting:
    """A container with its own agent; others make use of the GPU too."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def container(self, mib: int, *, context_us: int = 0) -> Container:
        folder = self.root / "containers" / f"{POD}_main"
        folder.mkdir(parents=True)
        box = make_container(folder, mib)
        simgpu.write(replace(box.machine, context_us=context_us), folder / "machine")
        return box

    @contextmanager
    def agent(self, box: Container) -> Iterator[None]:
        """With the agent's loop running."""
        begun, ended = Event(), Event()
        context = with_changes(fake_context(self.root), clock=SystemClock(), nvml=ListingNvml(box.folder / "machine"))

        async def run() -> None:
            loop = ArbitrationLoop(
                context,
                PodHost(box.folder),
                lambda folder, uuid: None,
                lambda gpu: 0,
                lambda folder, problem: None,
                lambda pods: None,
            )
            task = asyncio.create_task(loop.run())
            begun.set()
            await asyncio.to_thread(ended.wait)
            await canceled(task)

        thread = Thread(target=lambda: asyncio.run(run()))
        thread.start()
        try:
            assert begun.wait(60)
            wait_until(lambda: arbiter(box).figures_at > 0)
            yield
        finally:
            ended.set()
            thread.join()


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def arbiter(box: Container) -> layout.ArbiterFile:
    return layout.ArbiterFile.from_buffer_copy((box.folder / "arbiter").read_bytes())


def usage_head(box: Container) -> layout.UsageFile:
    with (box.folder / "usage").open("rb") as file:
        return layout.UsageFile.from_buffer_copy(file.read(ctypes.sizeof(layout.UsageFile)))


def disturb(box: Container, other: "subprocess.Popen[str]") -> None:
    wait_until(lambda: usage_head(box).devices[0].measuring != 0)
    assert line(other, "") == "0"


OTHER = "begin()\nprint('there', flush=True)\ninput()\nprint(take(200), flush=True)\ninput()"
"""A process of another container, which takes 200 MiB more when it gets a line."""


def test_a_context_counts_as_what_the_driver_says(setting: Setting) -> None:
    """Though another process took memory while it was made, so that the GPU's growth is no measure."""
    box = setting.container(2000, context_us=400_000)
    with setting.agent(box), box.waiting(OTHER, outside=True) as other, running(box, REPORT, *NESTED) as inner:
        disturb(box, other)
        assert line(inner) == "(0, 0, 0) (0, 1697)"
        assert usage_head(box).devices[0].context_bytes == CONTEXT


def test_without_an_agent_the_only_newcomer_to_the_drivers_list_has_the_figure(setting: Setting) -> None:
    """Memory that others take meanwhile is not this context's, and none of it is charged to later ones."""
    box = setting.container(2000, context_us=400_000)
    with box.waiting(OTHER, outside=True) as other, running(box, REPORT, *NESTED) as inner:
        disturb(box, other)
        assert line(inner) == "(0, 0, 0) (0, 1697)"
        assert usage_head(box).devices[0].context_bytes == CONTEXT


CROWD = """
import time
parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        if os.fork() == 0:
            begin()
            time.sleep(2)
            os._exit(0)
        time.sleep(0.1)
    os._exit(0)
"""
"""Programs of another container, of which one makes a context at any time."""


def test_contexts_that_come_at_once_without_an_agent_are_charged_to_no_later_one(setting: Setting) -> None:
    """None of two newcomers is known to be this one, so neither their sum nor one of both counts as a context."""
    box = setting.container(2000, context_us=400_000)
    with box.waiting(CROWD, outside=True), running(box, REPORT, *NESTED) as inner:
        assert line(inner) == "(0, 0, 0) (0, 1488)"
        assert usage_head(box).devices[0].context_bytes == 0


SIXTEEN = """
import threading
reading, writing = os.pipe()
for _ in range(16):
    if os.fork() == 0:
        codes = begin()
        os.write(1, (str(codes) + "\\n").encode())
        threading.Event().wait()
sys.stdin.readline()
"""
NOISE = """
import threading
def noise():
    at = ctypes.c_uint64()
    while True:
        for mib in (90, 350, 20, 700, 160):
            cuda.cuCtxSetCurrent(context)
            cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(mib << 20))
            cuda.cuMemFree_v2(at)
begin()
context = ctypes.c_void_p()
cuda.cuCtxGetCurrent(ctypes.byref(context))
threading.Thread(target=noise, daemon=True).start()
"""


def test_sixteen_processes_that_start_at_once_on_a_busy_gpu_end_with_their_true_figure(setting: Setting) -> None:
    box = setting.container(16 * 303 + 800, context_us=50_000)
    with setting.agent(box), box.waiting(NOISE, outside=True), running(box, SIXTEEN, *NESTED) as inner:
        assert [line(inner) for _ in range(16)] == ["(0, 0, 0)"] * 16
        usage = box.usage()
        assert [each.held[box.uuids[0]]["context"] for each in usage.processes] == [CONTEXT] * 16
        assert usage.devices[0].held == 16 * CONTEXT


@pytest.mark.parametrize("mib", [303, 310, 511, 1000])
def test_a_limit_below_1_gib_starts_a_program_whose_context_fits(mib: int, setting: Setting) -> None:
    box = setting.container(mib, context_us=400_000)
    with setting.agent(box), box.waiting(OTHER, outside=True) as other, running(box, REPORT, *NESTED) as inner:
        disturb(box, other)
        assert line(inner) == f"(0, 0, 0) (0, {mib - 303})"


def test_a_context_that_does_not_fit_is_refused_with_its_true_figure(setting: Setting) -> None:
    box = setting.container(302)
    with setting.agent(box):
        done = box.run(*NESTED, sys.executable, "-c", PRELUDE + "print(begin())")
    assert done.stdout == "(0, 2, 0)\n"
    assert done.stderr == f"[lamina] Device 0 OOM {CONTEXT} / {302 * MIB}\n"


@pytest.mark.parametrize("known", [400, 5000])
def test_what_other_programs_cost_refuses_none_that_fits(known: int, setting: Setting) -> None:
    """An earlier program of the container had a larger context, or a process wrote so into the usage file."""
    box = setting.container(320)
    with (box.folder / "usage").open("r+b") as file:
        head = layout.UsageFile.from_buffer_copy(file.read(ctypes.sizeof(layout.UsageFile)))
        head.devices[0].context_bytes = known * MIB
        file.seek(0)
        file.write(bytes(head))
    with setting.agent(box), running(box, REPORT, *NESTED) as inner:
        assert line(inner) == "(0, 0, 0) (0, 17)"


def test_a_guess_is_corrected_once_the_agent_answers(setting: Setting) -> None:
    """Two contexts came at once, so all of a small limit is taken, and the program starts."""
    box = setting.container(400, context_us=400_000)
    with box.waiting(CROWD, outside=True), running(box, REPORT, *NESTED) as inner:
        assert line(inner) == "(0, 0, 0) (0, 0)"
        with setting.agent(box):
            assert line(inner, "take(90)") == "0"
            assert line(inner, "free()") == "(0, 7)"


def test_further_contexts_count_as_what_each_of_them_takes(setting: Setting) -> None:
    box = setting.container(2000)
    script = """
created = ctypes.c_void_p()
print(begin(), take(100), cuda.cuCtxCreate_v2(ctypes.byref(created), 0, 0), free())
print(take(50), cuda.cuCtxDestroy_v2(created), free(), cuda.cuDevicePrimaryCtxReset_v2(0), begin(), free())
"""
    with setting.agent(box):
        done = box.run(*NESTED, sys.executable, "-c", PRELUDE + script)
    lines = ["(0, 0, 0) 0 0 (0, 1294)", "0 0 (0, 1597) 0 (0, 0, 0) (0, 1697)"]
    assert done.stdout.splitlines() == lines, done.stderr


def test_a_process_with_the_hosts_pids_asks_no_one(setting: Setting) -> None:
    box = setting.container(2000)
    if str(Path("/proc/self/ns/pid").readlink()) != "pid:[4026531836]":
        pytest.skip("this machine runs tests in a pid namespace")
    with setting.agent(box):
        assert box.run(sys.executable, "-c", PRELUDE + "print(begin(), free())").stdout == "(0, 0, 0) (0, 1697)\n"
        assert usage_head(box).figure_requests == 0
