"""Every way to take device memory is charged, in blocks of 2 MiB, and gives back what it took."""

import pytest

from tests.simgpu.machines import CONTEXT_MIB, TOTAL_MIB, Machine

OUT_OF_MEMORY, INVALID_VALUE = 2, 1


@pytest.mark.parametrize(
    ("take", "give", "mib"),
    [
        ("alloc(100)", "free({1})", 100),
        ("alloc(1.5)", "free({1})", 2),
        ("alloc(0.0001)", "free({1})", 2),
        ("alloc(100.5)", "free({1})", 102),
        ("alloc(100, 'cuMemAllocManaged')", "free({1})", 100),
        ("pitch(4, 1 << 18)", "free({1})", 128),
        ("alloc(100, 'cuMemAllocAsync')", "free_async({1}) or sync()", 128),
        ("create(100)", "cu.cuMemRelease(c_uint64({1}))", 100),
        ("array(1 << 20, 0, 0)", "cu.cuArrayDestroy(c_void_p({1}))", 4),
        ("array(1024, 1024, 10)", "cu.cuArrayDestroy(c_void_p({1}))", 40),
        ("array(1024, 1024, 0, 3)", "cu.cuMipmappedArrayDestroy(c_void_p({1}))", 6),
        ("create_context()", "destroy_context({1})", CONTEXT_MIB),
    ],
)
def test_taken_and_given_back(machine: Machine, take: str, give: str, mib: int) -> None:
    process = machine.started()
    for _ in range(3):
        taken = process(take)
        assert taken[0] == 0
        assert machine.used() == CONTEXT_MIB + mib
        assert process(give.format(*taken)) == 0
        assert machine.used() == CONTEXT_MIB
    assert machine.used(1) == 0


def test_small_allocations_share_blocks(machine: Machine) -> None:
    process = machine.started()
    places = process("[alloc(1 / 4)[1] for _ in range(64)]")
    assert len(set(places)) == 64
    assert machine.used() == CONTEXT_MIB + 16
    assert process(f"[free(p) for p in {places}]") == [0] * 64
    assert machine.used() == CONTEXT_MIB
    assert process(f"free({places[0]})") == INVALID_VALUE


def test_pitch_is_a_multiple_of_512(machine: Machine) -> None:
    process = machine.started()
    assert process("pitch(513, 4)")[2] == 1024
    assert process("pitch(0, 4)")[0] == INVALID_VALUE
    assert process("pitch((1 << 64) - 1, (1 << 64) - 1)")[0] == OUT_OF_MEMORY


@pytest.mark.parametrize("ask", ["alloc({})", "create({})", "alloc({}, 'cuMemAllocAsync')", "array({} << 18, 0, 0)"])
def test_never_more_than_the_card_has(machine: Machine, ask: str) -> None:
    process = machine.started()
    left = TOTAL_MIB - CONTEXT_MIB
    assert process(ask.format(left // 2 * 2 + 2))[0] == OUT_OF_MEMORY
    assert machine.used() == CONTEXT_MIB
    assert process(ask.format(left // 2 * 2))[0] == 0
    assert process(ask.format(2))[0] == OUT_OF_MEMORY
    assert machine.used() <= TOTAL_MIB


@pytest.mark.parametrize("size", [0, 1 << 42, (1 << 64) - 1])
def test_impossible_sizes(machine: Machine, size: int) -> None:
    process = machine.started()
    code = process(f"cu.cuMemAlloc_v2(byref(c_uint64()), c_size_t({size}))")
    assert code == (INVALID_VALUE if size == 0 else OUT_OF_MEMORY)
    assert machine.used() == CONTEXT_MIB


def test_a_context_takes_its_memory_with_it(machine: Machine) -> None:
    process = machine.started()
    code, context = process("create_context()")
    assert code == 0
    assert process("[alloc(m)[0] for m in (0.1, 10, 100)]") == [0, 0, 0]
    assert process("alloc(64, 'cuMemAllocAsync')[0]") == 0
    assert process("array(1024, 1024, 4)")[0] == 0
    assert process(f"destroy_context({context})") == 0
    assert machine.used() == CONTEXT_MIB
    assert process(f"destroy_context({context})") == 201
    assert process("cu.cuDevicePrimaryCtxRelease_v2(0)") == 0
    assert machine.used() == 0
    assert process("cu.cuDevicePrimaryCtxRelease_v2(0)") == 201


@pytest.mark.parametrize("function", ["cuMemAlloc_v2", "cuMemAllocManaged", "cuMemAllocAsync"])
@pytest.mark.parametrize("mib", [0.01, 3, 64])
def test_data_comes_back(machine: Machine, function: str, mib: float) -> None:
    process = machine.started()
    code, at = process(f"alloc({mib}, {function!r})")
    assert code == 0
    size = int(mib * (1 << 20))
    assert process(f"write({at + size - 4}, b'last')") == 0
    assert process(f"write({at}, b'first')") == 0
    assert process(f"fetch({at}, 5)") == (0, b"first")
    assert process(f"fetch({at + size - 4}, 4)") == (0, b"last")
    assert process(f"write({at + size - 3}, b'over')") == INVALID_VALUE
    assert process(f"cu.cuMemsetD8_v2(c_uint64({at}), 65, c_size_t(3)) or fetch({at}, 5)") == (0, b"AAAst")
    assert process(f"free({at})") == 0
    assert process(f"fetch({at}, 5)")[0] == INVALID_VALUE


def test_data_far_inside_a_large_allocation_reads_as_zero(machine: Machine) -> None:
    process = machine.started()
    _, at = process("alloc(100)")
    assert process(f"write({at + (90 << 20)}, b'lost')") == 0
    assert process(f"fetch({at + (90 << 20)}, 4)") == (0, b"\0\0\0\0")


def test_virtual_memory(machine: Machine) -> None:
    process = machine.started()
    at, (_, handle) = process("reserve(8)"), process("create(4)")
    assert machine.used() == CONTEXT_MIB + 4
    assert process(f"map_at({at}, 4, {handle})") == 0
    assert process(f"map_at({at}, 4, {handle})") == INVALID_VALUE
    assert process(f"map_at({at + (4 << 20)}, 6, {handle})") == INVALID_VALUE
    assert process(f"(write({at}, b'here'), fetch({at}, 4))") == (0, (0, b"here"))
    assert process(f"write({at + (4 << 20)}, b'nowhere')") == INVALID_VALUE
    assert process(f"cu.cuMemRelease(c_uint64({handle}))") == 0
    assert machine.used() == CONTEXT_MIB + 4  # still mapped
    assert process(f"cu.cuMemUnmap(c_uint64({at}), c_size_t(4 << 20))") == 0
    assert machine.used() == CONTEXT_MIB
    assert process(f"cu.cuMemAddressFree(c_uint64({at}), c_size_t(8 << 20))") == 0
    assert process("cu.cuMemCreate(byref(c_uint64()), c_size_t(3 << 20), byref(device_properties()), c_uint64(0))") == 1


def test_a_pool_with_the_highest_threshold_keeps_everything(machine: Machine) -> None:
    """Frameworks set it so. Rounded up, it must not become less than what is in use."""
    process = machine.started()
    pool = process("pool()")
    assert process(f"pool_threshold({pool}, {2**64 - 1})") == 0
    assert process(f"pool_alloc({pool}, 128)")[0] == 0
    assert machine.used() == CONTEXT_MIB + 128
    assert process("sync()") == 0
    assert machine.used() == CONTEXT_MIB + 128


def test_a_pool_keeps_what_its_threshold_says(machine: Machine) -> None:
    process = machine.started()
    pool = process("pool()")
    assert process(f"pool_threshold({pool}, {64 << 20})") == 0
    places = [process(f"pool_alloc({pool}, 50)") for _ in range(2)]
    assert [code for code, _ in places] == [0, 0]
    assert machine.used() == CONTEXT_MIB + 128
    assert [process(f"free_async({at})") for _, at in places] == [0, 0]
    assert machine.used() == CONTEXT_MIB + 128
    assert process("sync()") == 0
    assert machine.used() == CONTEXT_MIB + 64
    assert process(f"cu.cuMemPoolTrimTo(c_void_p({pool}), c_size_t(0))") == 0
    assert machine.used() == CONTEXT_MIB
    assert process(f"cu.cuMemPoolDestroy(c_void_p({pool}))") == 0
    assert process(f"cu.cuMemPoolDestroy(c_void_p({pool}))") == INVALID_VALUE


def test_managed_memory_spills_to_the_host(machine: Machine) -> None:
    process = machine.started()
    assert process("alloc(10000, 'cuMemAllocManaged')")[0] == 0
    code, at = process("alloc(10000, 'cuMemAllocManaged')")
    assert code == 0
    mine = machine.state().gpus[0].processes[0]
    assert machine.used() <= TOTAL_MIB
    assert (mine.memory_mib + mine.spilled_mib) == CONTEXT_MIB + 20000
    assert process("alloc(4000)")[0] == 0  # moves managed pages out of its way
    assert machine.state().gpus[0].processes[0].spilled_mib == mine.spilled_mib + 4000
    assert process(f"free({at})") == 0
    assert process("alloc(70000, 'cuMemAllocManaged')")[0] == OUT_OF_MEMORY  # more than the host may hold
    assert machine.used() <= TOTAL_MIB


def test_host_memory_costs_no_device_memory(machine: Machine) -> None:
    process = machine.started()
    round_trip = "(lambda p: cu.cuMemHostAlloc(byref(p), c_size_t(1 << 26), 0) or cu.cuMemFreeHost(p))(c_void_p())"
    assert process(round_trip) == 0
    assert process("cu.cuMemFreeHost(c_void_p(12345))") == INVALID_VALUE
    assert machine.used() == CONTEXT_MIB


def test_memory_of_a_graph_is_charged_when_it_runs_until_it_is_trimmed(machine: Machine) -> None:
    process = machine.started()
    on = process("stream()")
    code, ready = process(f"capturing_allocation({on}, 100)")
    assert code == 0
    assert machine.used() == CONTEXT_MIB
    for _ in range(2):
        assert process(f"launch_graph({ready}, {on}) or sync()") == 0
        assert machine.used() == CONTEXT_MIB + 100
    assert process(f"cu.cuGraphExecDestroy(c_void_p({ready}))") == 0
    assert machine.used() == CONTEXT_MIB + 100
    assert process("cu.cuDeviceGraphMemTrim(0)") == 0
    assert machine.used() == CONTEXT_MIB
    _, large = process(f"capturing_allocation({on}, 20000)")
    assert process(f"launch_graph({large}, {on})") == OUT_OF_MEMORY
