"""Several processes on one GPU: who holds what, races for the last memory, and sudden death."""

import pytest

from tests.simgpu.machines import CONTEXT_MIB, TOTAL_MIB, Machine
from tests.waiting import wait_until

OUT_OF_MEMORY = 2


def test_each_process_has_its_own_account(machine: Machine) -> None:
    first, second = machine.started(), machine.started()
    assert first("alloc(1000)")[0] == second("alloc(200)")[0] == 0
    holders = {p.pid: p.memory_mib for p in machine.state().gpus[0].processes}
    assert holders == {first.pid: CONTEXT_MIB + 1000, second.pid: CONTEXT_MIB + 200}
    assert machine.used() == sum(holders.values())
    assert first("used()") == second("used()") == machine.used()
    first.end()
    assert second("alloc(15000)")[0] == 0
    assert [p.pid for p in machine.state().gpus[0].processes] == [second.pid]


@pytest.mark.parametrize("waited", [True, False], ids=["gone", "zombie"])
def test_memory_of_a_killed_process_is_found_when_it_is_needed(machine: Machine, waited: bool) -> None:
    victim, survivor = machine.started(), machine.started()
    assert victim("alloc(15000)")[0] == 0
    assert survivor("alloc(15000)")[0] == OUT_OF_MEMORY
    if waited:
        victim.kill()
        assert survivor("alloc(15000)")[0] == 0
    else:
        victim.kill_unwaited()
        wait_until(lambda: survivor("alloc(15000)")[0] == 0)
    assert machine.used() == CONTEXT_MIB + 15000


def test_memory_of_a_killed_process_disappears_from_view(machine: Machine) -> None:
    victim, survivor = machine.started(), machine.started()
    assert victim("alloc(1000)")[0] == 0
    victim.kill()
    wait_until(lambda: survivor("used()") == CONTEXT_MIB)
    assert [p.pid for p in machine.state().gpus[0].processes] == [survivor.pid]


TAKEN = "[(a, used()) for c, a in [alloc(m) for m in (256, 1024, 512, 2048, 128)] if c == 0]"
RACE = f"max((free(a) or seen for a, seen in {TAKEN}), default=0)"


def test_racing_processes_never_hold_more_than_the_card(machine: Machine) -> None:
    processes = [machine.started() for _ in range(8)]
    for process in processes:
        process.send(f"max({RACE} for _ in range(300))")
    most = [process.receive() for process in processes]
    assert all(8 * CONTEXT_MIB < seen <= TOTAL_MIB for seen in most)
    gpu = machine.state().gpus[0]
    assert gpu.used_mib == 8 * CONTEXT_MIB
    assert sum(p.memory_mib for p in gpu.processes) == gpu.used_mib


def test_the_last_memory_goes_to_exactly_one(machine: Machine) -> None:
    processes = [machine.started() for _ in range(8)]
    for _ in range(10):
        for process in processes:
            process.send("alloc(8000)")
        taken = [process.receive() for process in processes]
        winners = [(p, at) for p, (code, at) in zip(processes, taken, strict=True) if code == 0]
        assert len(winners) == 1
        assert winners[0][0](f"free({winners[0][1]})") == 0


def test_killed_amid_allocations_leaves_the_books_balanced(machine: Machine) -> None:
    survivor = machine.started()
    for round_number in range(12):
        victims = [machine.started() for _ in range(2)]
        for victim in victims:
            victim.send(f"[{RACE} for _ in range(100000)]")
        for _ in range(100 * (round_number % 4)):  # they race for as long as another process takes for this
            survivor("used()")
        for victim in victims:
            victim.kill()
        wait_until(lambda: survivor("used()") == CONTEXT_MIB)
    gpu = machine.state().gpus[0]
    assert [(p.pid, p.memory_mib) for p in gpu.processes] == [(survivor.pid, CONTEXT_MIB)]
    assert gpu.used_mib == CONTEXT_MIB
    assert survivor("alloc(15856)")[0] == 0


def test_a_program_that_replaces_itself_keeps_nothing(machine: Machine) -> None:
    process = machine.started()
    assert process("alloc(1000)")[0] == 0
    assert process("os.execv(sys.executable, [sys.executable, sys.argv[0], 'again'])") == "again"
    assert process("start()") == 0
    assert process("used()") == CONTEXT_MIB


def test_two_gpus_are_apart(machine: Machine) -> None:
    process = machine.process()
    assert process("init() or primary(1)") == 0
    assert process("alloc(500)")[0] == 0
    assert (machine.used(0), machine.used(1)) == (0, CONTEXT_MIB + 500)
    assert process("primary(0) or used()") == CONTEXT_MIB
