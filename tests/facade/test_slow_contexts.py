"""A process that takes very long to make its first context, or is stopped, keeps no other of its container out."""

import os
import signal
import subprocess
import sys

import pytest
from msgspec.structs import replace

from lamina.enforcement import layout
from lamina_lab import simgpu
from tests.facade.built import build_facade
from tests.facade.conftest import CONTEXT, MIB, PRELUDE, Container, MakeContainer
from tests.facade.pid_namespaces import line, running
from tests.waiting import wait_until

REPORT = "print(begin(), flush=True)\nfor line in sys.stdin: print(eval(line), flush=True)"
IMPATIENT = (
    ("memory/context_cost.c", "WAIT_MS = 30000", "WAIT_MS = 500"),
    ("memory/context_cost.c", "SAY_SO_AFTER_MS = 2000", "SAY_SO_AFTER_MS = 100"),
)
SAID = "[lamina] Device 0: waiting for another process of this container"


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The facade, which waits for others for half a second."""
    return str(build_facade(tmp_path_factory.mktemp("impatient"), "cuda", IMPATIENT))


def usage(box: Container) -> layout.UsageFile:
    return layout.UsageFile.from_buffer_copy((box.folder / "usage").read_bytes())


@pytest.mark.parametrize(("mib", "codes"), [(1500, "(0, 0, 0)"), (700, "(0, 2, 0)")])
def test_a_stopped_process_keeps_no_other_out(mib: int, codes: str, impatient: str, container: MakeContainer) -> None:
    """Its context counts as what one is likely to take: 512 MiB."""
    box = container(mib)
    simgpu.write(replace(box.machine, context_us=500_000), box.folder / "machine")
    with running(box, REPORT) as first:
        wait_until(lambda: usage(box).devices[0].measuring != 0)
        os.kill(first.pid, signal.SIGSTOP)
        command = [sys.executable, "-c", PRELUDE + "print(begin())"]
        variables = box.environment() | {"LD_PRELOAD": impatient}
        second = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
        assert (second.stdout.strip(), SAID in second.stderr) == (codes, True), second.stderr
        os.kill(first.pid, signal.SIGCONT)
        assert line(first) == "(0, 0, 0)"
        wait_until(lambda: line(first, "free()") == f"(0, {mib - CONTEXT // MIB})")  # the second one has ended
