"""Managed memory moves between GPU and host: slower, but right, and never more on the GPU than it has."""

from tests.simgpu.machines import CONTEXT_MIB, TOTAL_MIB, Machine
from tests.waiting import wait_until

MS = 1_000_000
NS_PER_MIB = 80_000


def busy(machine: Machine, pid: int) -> int:
    """GPU time that a process was given, in ns."""
    return next(p.busy_ns for p in machine.state().gpus[0].processes if p.pid == pid)


def spilled(machine: Machine) -> dict[int, int]:
    return {p.pid: p.spilled_mib for p in machine.state().gpus[0].processes}


def test_a_kernel_waits_for_its_processs_pages(machine: Machine) -> None:
    first, second = machine.started(), machine.started()
    assert first("alloc(9000, 'cuMemAllocManaged')")[0] == second("alloc(9000, 'cuMemAllocManaged')")[0] == 0
    left = TOTAL_MIB - 2 * CONTEXT_MIB - 9000
    assert spilled(machine) == {first.pid: 0, second.pid: 9000 - left}
    assert first("spin(1) or sync()") == 0
    assert busy(machine, first.pid) == MS
    # What lies on the host moves in, and the same amount of the other's moves out for it.
    for process, other in ((second, first), (first, second), (second, first)):
        before = busy(machine, process.pid)
        assert process("spin(1) or sync()") == 0
        assert busy(machine, process.pid) - before == MS + (9000 - left) * NS_PER_MIB
        assert spilled(machine) == {process.pid: 0, other.pid: 9000 - left}
        assert machine.used() <= TOTAL_MIB
        before = busy(machine, process.pid)
        assert process("spin(1, 3) or sync()") == 0
        assert busy(machine, process.pid) - before == 3 * MS


def test_more_than_the_gpu_has_travels_with_every_kernel(machine: Machine) -> None:
    process = machine.started()
    assert process("alloc(20000, 'cuMemAllocManaged')")[0] == 0
    beyond = spilled(machine)[process.pid]
    assert beyond >= 20000 - TOTAL_MIB
    for count in (1, 2):
        assert process("spin(1) or sync()") == 0
        assert busy(machine, process.pid) == count * (MS + beyond * NS_PER_MIB)


def test_the_one_that_was_idle_longest_is_paged_out(machine: Machine) -> None:
    old, recent, new = machine.started(), machine.started(), machine.started()
    for process in (recent, old):
        assert process("alloc(6000, 'cuMemAllocManaged')")[0] == 0
    for process in (old, recent):
        assert process("spin(1) or sync()") == 0
    assert new("alloc(9000)")[0] == 0  # plain memory, which cannot move itself
    assert spilled(machine)[recent.pid] == 0 and spilled(machine)[old.pid] > 0
    assert machine.used() <= TOTAL_MIB


def test_what_a_killed_process_had_paged_is_free_again(machine: Machine) -> None:
    first, second = machine.started(), machine.started()
    for process in (first, second):
        assert process("alloc(12000, 'cuMemAllocManaged')")[0] == 0
        assert process("spin(1) or sync()") == 0
    first.kill()
    # Calls of others look for dead processes, but not each of them does.
    wait_until(lambda: second("used()") > 0 and first.pid not in spilled(machine))
    assert second("spin(1) or sync()") == 0
    assert spilled(machine) == {second.pid: 0}
    assert machine.used() == CONTEXT_MIB + 12000
