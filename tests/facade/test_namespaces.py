"""Processes of other pid namespaces share the account: what they hold counts, and is free when they are dead."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from lamina.enforcement import layout
from lamina_lab import simgpu
from tests.facade.conftest import CONTEXT, MIB, MakeContainer
from tests.facade.nvml_programs import ask
from tests.facade.pid_namespaces import NESTED, can_nest, line, running
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(not can_nest(), reason="this machine lets no one make pid namespaces")


def until_taken(process: "subprocess.Popen[str]") -> None:
    """Take what fits once another process has ended: the kernel ends a namespace a moment after its first process."""
    wait_until(lambda: line(process, "take(900)") == "0")


HOLD = "print(begin(), take(600), flush=True)\nfor line in sys.stdin: print(eval(line), flush=True)"
OK = "(0, 0, 0) 0"


@pytest.mark.parametrize("proc", [(), ("--mount-proc",)], ids=["proc of outside", "own proc"])
def test_the_dead_of_another_namespace_leave_nothing_counted(proc: tuple[str, ...], container: MakeContainer) -> None:
    box = container(2000)
    with running(box, HOLD) as outer:
        assert line(outer) == OK
        with running(box, HOLD, *NESTED, *proc) as inner:
            assert line(inner) == OK
            for _ in range(3):  # it lives, so no one takes it for dead
                assert line(outer, "take(400)") == "2" and line(inner, "take(400)") == "2"
            assert box.usage().devices[0].held == 2 * (CONTEXT + 600 * MIB)
        until_taken(outer)
        assert box.usage().devices[0].held == CONTEXT + 1500 * MIB


def test_a_process_of_another_namespace_has_its_own_name(container: MakeContainer) -> None:
    """Its PID is that of another process outside of its namespace, which the driver would name."""
    box = container(2000)
    listed = "nvml.nvmlDeviceGetComputeRunningProcesses(devices()[0])"
    with running(box, HOLD, *NESTED) as inner:
        assert line(inner) == OK
        named = ask(box, f"print(json.dumps([(p.pid, nvml.nvmlSystemGetProcessName(p.pid)) for p in {listed}]))")
        assert named == [[1, Path(sys.executable).name[:15]]]


def test_the_dead_of_outside_are_cleared_from_within(container: MakeContainer) -> None:
    box = container(2000)
    with running(box, HOLD, *NESTED) as inner:
        assert line(inner) == OK
        with running(box, HOLD) as outer:
            assert line(outer) == OK and line(inner, "take(400)") == "2"
        assert line(inner, "take(900)") == "0"


def test_a_contexts_cost_is_found_while_others_come_and_go(container: MakeContainer) -> None:
    """Within, the driver's list has other pids; the one that is new there has the figure."""
    box = container(3000)
    simgpu.write(replace(box.machine, context_us=1_000_000), box.folder / "machine")
    reported = "print(begin(), free(), flush=True)\ninput()"
    with box.waiting("begin(), take(2000)", outside=True) as other, running(box, reported, *NESTED) as first:
        while layout.UsageFile.from_buffer_copy((box.folder / "usage").read_bytes()).devices[0].measuring == 0:
            assert first.poll() is None
        other.kill()
        other.wait()
        assert line(first) == "(0, 0, 0) (0, 2697)"
    with running(box, reported, *NESTED) as second:
        assert line(second) == "(0, 0, 0) (0, 2697)"


def test_a_forked_child_does_not_keep_its_dead_parents_memory(container: MakeContainer) -> None:
    box = container(2000)
    below_init = (*NESTED, "sh", "-c", '"$@"; sleep 600', "sh")
    fork = "\nif os.fork() == 0: import time; time.sleep(600)\n"
    with running(box, HOLD) as outer, running(box, HOLD.replace("\n", fork, 1), *below_init) as inner:
        assert line(outer) == OK and line(inner) == OK
        assert line(outer, "take(400)") == "2"
        line(inner, "print('', flush=True) or os.kill(os.getpid(), 9)")
        until_taken(outer)


def test_a_program_that_became_another_one_holds_nothing(container: MakeContainer) -> None:
    box = container(2000)
    with running(box, HOLD) as outer, running(box, HOLD, *NESTED) as inner:
        assert line(outer) == OK and line(inner) == OK
        line(inner, "os.execv('/bin/sh', ['sh', '-c', 'echo; sleep 600'])")
        assert line(outer, "take(900)") == "0"


def test_a_program_that_closes_all_files_keeps_what_it_holds_counted(container: MakeContainer) -> None:
    box = container(2000)
    with running(box, HOLD) as outer, running(box, HOLD, *NESTED) as inner:
        assert line(outer) == OK and line(inner) == OK
        assert line(inner, "os.closerange(3, 4096)") == "None"
        assert line(outer, "take(400)") == "2"
        assert box.usage().devices[0].held == 2 * (CONTEXT + 600 * MIB)
