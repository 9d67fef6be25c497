"""Many processes share one limit; those that die, fork or become another program leave nothing counted."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from lamina.enforcement import layout
from lamina_lab import simgpu
from tests.facade.conftest import CONTEXT, MIB, PRELUDE, Container, MakeContainer
from tests.facade.python_programs import python
from tests.waiting import wait_until


def together(box: Container, worker: Path, what: str, count: int, rounds: int) -> list[list[str]]:
    """Runs workers that start at one moment and leave at another; returns the words that each says."""
    limit = box.limits.devices[0].memory_bytes // MIB
    workers = [box.start(worker, "dlopen", what, str(limit), str(rounds), str(seed)) for seed in range(count)]
    output = []
    for stage in range(3):
        for process in workers:
            assert process.stdin is not None and process.stdout is not None
            if stage > 0:
                process.stdin.write("\n")
                process.stdin.flush()
        if stage < 2:
            output = [process.stdout.readline().split() for process in workers if process.stdout]
            if stage == 0:
                assert output == [["ready"]] * count
            else:
                assert {words[0] for words in output} == {"ok"}, output
    for process in workers:
        process.communicate()
        assert process.returncode == 0
    return output


@pytest.mark.parametrize(("count", "rounds"), [(16, 1500), (64, 100)])
def test_racing_processes_never_hold_a_byte_over(count: int, rounds: int, container: MakeContainer, programs) -> None:
    box = container(count * 303 + 1000)
    output = together(box, programs["worker"], "race", count, rounds)
    taken, refused, imported, run = (sum(int(words[i]) for words in output) for i in range(1, 5))
    assert refused > 0, "no one met the limit"
    assert taken > 0 and imported > 0 and run > 0
    assert box.usage().devices[0].peak <= box.limits.devices[0].memory_bytes


@pytest.mark.parametrize(("script", "held"), [("begin()", 303), ("begin(); take(200)", 503)])
def test_the_peak_has_contexts_at_their_cost_and_not_at_what_was_reserved_for_them(
    script: str, held: int, container: MakeContainer
) -> None:
    """The first context of a container reserves a gibibyte until its cost is known."""
    box = container(2000)
    with box.waiting(script):
        assert box.usage().devices[0].peak == held * MIB
    with box.waiting("begin(); begin(); begin()"):
        assert box.usage().devices[0].peak == max(held, 303) * MIB, "the process before has ended"


@pytest.mark.parametrize("later", [100, 900])
def test_the_peak_stays_when_memory_is_given_back(later: int, container: MakeContainer) -> None:
    box = container(2000)
    with box.waiting("begin(); take(500)"):
        pass
    with box.waiting(f"begin(); take({later})"):
        assert box.usage().devices[0].peak == (303 + max(500, later)) * MIB


@pytest.mark.parametrize("count", [16, 64])
def test_racing_processes_together_get_all_of_it(count: int, container: MakeContainer, programs) -> None:
    output = together(container(count * 303 + 1000), programs["worker"], "grab", count, 0)
    assert sum(int(words[1]) for words in output) == 500


@pytest.mark.parametrize("more", [0, 700, 1100])
def test_processes_that_start_together_are_all_let_in_where_all_fit(
    more: int, container: MakeContainer, programs, tmp_path: Path
) -> None:
    """Though no one knows yet what a context costs, and each takes its time."""
    box = container(8 * 303 + more)
    simgpu.write(replace(box.machine, context_us=30_000), tmp_path / "machine")
    output = together(box, programs["worker"], "grab", 8, 0)
    assert sum(int(words[1]) for words in output) == more // 2


def test_processes_that_start_together_make_their_contexts_at_the_same_time(container: MakeContainer, programs) -> None:
    """Also the first ones of a container, where the largest contexts fit. Each stays in the driver for
    longer than the test waits."""
    box = container(17 * 1024)
    simgpu.write(replace(box.machine, context_us=600_000_000), box.folder / "machine")
    workers = [box.start(programs["worker"], "dlopen", "grab", "17408", "0", "1") for _ in range(16)]
    try:
        wait_until(
            lambda: box.really_held() == 16 * CONTEXT, lambda: f"the driver makes {box.really_held()} bytes of them"
        )
    finally:
        for process in workers:
            process.kill()
            process.communicate()


def test_a_process_that_dies_while_it_measures_a_context_blocks_no_other(container: MakeContainer, programs) -> None:
    box = container(1200)
    simgpu.write(replace(box.machine, context_us=300_000), box.folder / "machine")
    first = box.start(programs["worker"], "dlopen", "grab", "1200", "0", "1")
    while layout.UsageFile.from_buffer_copy((box.folder / "usage").read_bytes()).devices[0].measuring == 0:
        assert first.poll() is None
    first.kill()
    first.communicate()
    assert box.usage().devices[0].context_bytes == 0
    assert python(box, "print(begin(), free())").stdout == "(0, 0, 0) (0, 897)\n"


def test_contexts_that_start_together_stay_within_the_limit(container: MakeContainer, programs) -> None:
    box = container(5 * 303 + 100)
    workers = [box.start(programs["worker"], "dlopen", "grab", str(5 * 303 + 100), "0", "1") for _ in range(16)]
    output = [process.stdout.readline().strip() for process in workers if process.stdout]
    assert sorted(output) == ["context 2"] * 11 + ["ready"] * 5
    assert box.really_held() <= box.limits.devices[0].memory_bytes
    for process in workers:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("seed", [1, 2])
def test_all_comes_back_after_hundreds_of_kills(seed: int, container: MakeContainer, programs) -> None:
    box = container(303 + 1700)
    done = box.run(programs["killed"], "300", str(seed))
    assert done.stdout.splitlines()[-1] == f"ok {CONTEXT}", done.stdout + done.stderr


def test_killed_within_any_call_a_process_leaves_nothing(container: MakeContainer, programs) -> None:
    places = os.environ.get("LAMINA_TEST_KILLS", "5")
    done = container(1500).run(programs["killed_in"], places, timeout=60 * int(places))
    if done.returncode == 77:
        pytest.skip("this machine does not let a process step through its child")
    assert done.stdout == f"ok {12 * int(places)}\n", done.stdout + done.stderr[-500:]


@pytest.mark.parametrize("threads", [2, 12])
def test_threads_of_one_process_lose_nothing(threads: int, container: MakeContainer, programs) -> None:
    done = container(1500).run(programs["threads"], str(threads), "3000")
    assert done.stdout == "ok\n", done.stdout + done.stderr[-500:]


def test_a_forked_child_has_its_own_account(container: MakeContainer) -> None:
    box = container(2000)
    script = """
print(begin(), take(600), free(), flush=True)
child = os.fork()
if child == 0:
    print(begin(), take(700), take(300), free(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(take(1000))
"""
    done = python(box, script)
    # 2000 - 303 - 600 = 1097 are left; the child's context and 700 leave 94; when it is gone all is back
    assert done.stdout.splitlines() == ["(0, 0, 0) 0 (0, 1097)", "(0, 0, 0) 0 2 (0, 94)", "0"], done.stderr


def test_children_forked_during_initialisation_do_not_hang(container: MakeContainer, programs) -> None:
    done = container(2000).run(programs["forking"], timeout=120)
    assert done.stdout == "ok\n", done.stdout + done.stderr


def test_another_program_in_the_same_process_starts_from_nothing(container: MakeContainer) -> None:
    script = """
print(begin(), take(600), free(), flush=True)
if len(sys.argv) < 2:
    os.execv(sys.executable, [sys.executable, "-c", os.environ["SCRIPT"], "again"])
"""
    done = python(container(2000), script, SCRIPT=PRELUDE + script)
    assert done.stdout.splitlines() == ["(0, 0, 0) 0 (0, 1097)"] * 2, done.stderr


def test_memory_that_a_process_left_by_exec_is_counted(container: MakeContainer) -> None:
    box = container(2000)
    command = [sys.executable, "-c", PRELUDE + "begin(); take(600); os.execvp('sleep', ['sleep', '60'])"]
    sleeper = subprocess.Popen(command, env=box.environment())
    try:
        while Path(f"/proc/{sleeper.pid}/comm").read_text().strip() != "sleep":
            assert sleeper.poll() is None
        done = python(box, "print(begin(), take(1600))")
        assert done.stdout == "(0, 0, 0) 0\n", done.stderr
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_thread_without_a_context_gets_the_drivers_answer(container: MakeContainer) -> None:
    script = """
import threading
begin()
thread = threading.Thread(target=lambda: print(take(1), free()))
thread.start(), thread.join()
"""
    assert python(container(2000), script).stdout == "201 (201, 0)\n"


def test_more_processes_than_slots_is_a_clean_error(container: MakeContainer) -> None:
    box = container(2000)
    with (box.folder / "usage").open("r+b") as file:
        stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        namespace = Path("/proc/self/ns/pid").stat().st_ino & 0x7FFF
        owner = os.getpid() | (int(stat[19]) & ((1 << 26) - 1)) << 22 | namespace << 48
        for slot in range(layout.SLOTS):
            os.pwrite(
                file.fileno(),
                owner.to_bytes(8, "little"),
                ctypes.sizeof(layout.UsageFile) + slot * layout.slot_stride(1),
            )
        os.pwrite(file.fileno(), layout.SLOTS.to_bytes(4, "little"), layout.UsageFile.slots_used.offset)
    done = python(box, "print(begin()[0], take(1))")
    assert done.stdout.split()[0] == "304" and "1024 processes" in done.stderr


def test_lives_of_every_kind_in_turn_leave_nothing_and_take_few_slots(container: MakeContainer, programs) -> None:
    lives = os.environ.get("LAMINA_TEST_LIVES", "1500")
    box = container(2700)  # room for some: a daemon that is ending may still be there when the next one starts
    done = box.run(programs["crowd"], "turn", lives, timeout=600)
    assert done.stdout == f"ok {CONTEXT}\n", done.stdout + done.stderr[-500:]
    assert layout.UsageFile.from_buffer_copy((box.folder / "usage").read_bytes()).slots_used <= 4


def test_one_process_more_than_there_are_slots_is_refused_and_nothing_else(container: MakeContainer, programs) -> None:
    box = container(900)
    done = box.run(programs["crowd"], "once", str(layout.SLOTS), timeout=300)
    assert done.stdout == f"ok {CONTEXT}\n", done.stdout + done.stderr[-500:]
    assert done.stderr.count("1024 processes") == 1 and len(done.stderr.splitlines()) == 1
