"""GPU time: kernels take the time they say, one after the other, and processes take turns."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simgpu.machines import Machine
from tests.waiting import wait_until

NOT_READY = 600
MS = 1_000_000


def test_launches_return_at_once_and_the_wait_takes_as_long_as_the_kernels(machine: Machine) -> None:
    process = machine.started()
    start = time.monotonic()
    assert process("(spin(20, 5), query(event()))") == (0, NOT_READY)
    assert machine.state().gpus[0].processes[0].queued_ns > 0
    assert process("sync()") == 0
    assert time.monotonic() - start >= 0.1
    gpu = machine.state().gpus[0]
    assert gpu.busy_ns == 100 * MS + 1, "and 1 ns for the event"
    assert (gpu.processes[0].busy_ns, gpu.processes[0].queued_ns, gpu.processes[0].launches) == (gpu.busy_ns, 0, 5)


def test_events_are_stamped_by_the_gpu(machine: Machine) -> None:
    process = machine.started()
    asked = "[event(), spin(20, 3), event(), spin(5), event()][0::2]"
    first, middle, last, pending = process(f"(lambda e: (*e, elapsed(e[0], e[2])[0]))({asked})")
    assert pending == NOT_READY
    assert process("sync()") == 0
    assert process(f"query({last})") == 0
    code, ms = process(f"elapsed({middle}, {last})")
    assert code == 0
    assert ms == pytest.approx(5, abs=0.001)
    assert process(f"elapsed({first}, {middle})")[1] >= 60


def test_an_event_long_past_keeps_its_stamp(machine: Machine) -> None:
    process = machine.started()
    first, second = process("(spin(50), event(), spin(3), event())")[1::2]
    assert process("sync() or spin(0.2, 500) or sync()") == 0
    assert process(f"elapsed({first}, {second})")[1] == pytest.approx(3, abs=0.001)


def test_streams_share_one_queue(machine: Machine) -> None:
    process = machine.started()
    one, two = process("(stream(), stream())")
    state, wait = "cu.cuStreamQuery(c_void_p({}))".format, "cu.cuStreamSynchronize(c_void_p({}))".format
    assert process(f"(spin(200, 1, {one}), spin(800, 1, {two}), {state(one)})") == (0, 0, NOT_READY)
    assert process(f"({wait(one)}, {state(one)}, {state(two)})") == (0, 0, NOT_READY)
    assert process(f"({wait(two)}, {state(two)}, cu.cuStreamDestroy_v2(c_void_p({two})))") == (0, 0, 0)
    assert process("cu.cuStreamDestroy_v2(c_void_p(0))") == 400


@pytest.mark.parametrize("kernel_ms", [[1, 1, 1], [1, 7, 30]], ids=["equal", "different"])
def test_three_busy_processes_get_a_third_each(machine: Machine, kernel_ms: list[float]) -> None:
    processes = [machine.started() for _ in kernel_ms]
    for process, ms in zip(processes, kernel_ms, strict=True):
        process.send(f"spin({ms}, {int(1500 / ms)})")
    for process in processes:
        assert process.receive() == 0
    before = machine.state()
    time.sleep(0.6)  # their parts of the GPU's time show in real time only
    processes[0]("query(event())")  # a query updates the time line
    after = machine.state()
    given = {p.pid: p.busy_ns for p in before.gpus[0].processes}
    gained = [p.busy_ns - given[p.pid] for p in after.gpus[0].processes]
    wall = after.now_ns - before.now_ns
    assert [share / wall for share in gained] == pytest.approx([1 / 3] * 3, abs=0.05)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Machine]:
    """A machine whose time slices are so long that what happens in them does not depend on a busy machine."""
    machine = Machine(tmp_path / "slow", "gpus:\n- {model: V100-SXM2-16GB, timeSliceUs: 30000}\n")
    yield machine
    machine.close()


def test_what_a_process_submits_in_its_turn_waits_for_the_next(slow: Machine) -> None:
    """With the events around it. An H200 does so: 0.3 ms and then as much take 3 ms next to a busy process."""
    hog, guest = slow.started(), slow.started()
    assert hog("spin(100, 500)") == 0
    until_it_runs = "[None for _ in iter(lambda: query(e), 0)]"
    second = "event(), spin(5), event()"
    found = guest(f"(lambda e: (e, spin(15), {until_it_runs}, {second}))(event())")
    first, _, _, before, _, after = found
    assert guest("sync()") == 0
    assert guest(f"elapsed({before}, {after})")[1] == pytest.approx(5, abs=0.001)
    assert guest(f"elapsed({first}, {after})")[1] >= 20 + 30


def test_an_event_is_recorded_in_a_turn_of_its_process(slow: Machine) -> None:
    """With two others at work, the end of one's turn is not yet that of the process."""
    for process in (slow.started(), slow.started()):
        assert process("spin(100, 500)") == 0
    guest = slow.started()
    for _ in range(5):
        first, _, last = guest("(event(), spin(1), event())")
        assert guest("sync()") == 0
        assert guest(f"elapsed({first}, {last})")[1] == pytest.approx(1, abs=0.001)


def test_a_deep_queue_does_not_starve_another_process(machine: Machine) -> None:
    hog, guest = machine.started(), machine.started()
    assert hog("spin(100, 500)") == 0
    assert guest("spin(10) or sync()") == 0
    queued = {p.pid: p.queued_ns for p in machine.state().gpus[0].processes}
    assert queued[hog.pid] > 10_000 * MS, "the guest did not wait for the 50 s of the hog"


def test_what_a_dead_process_had_queued_is_dropped(machine: Machine) -> None:
    hog, guest = machine.started(), machine.started()
    assert hog("spin(100, 500)") == 0
    hog.kill()
    wait_until(lambda: guest("spin(5) or sync()") == 0 and len(machine.state().gpus[0].processes) == 1)
    before = machine.state().gpus[0].busy_ns
    assert guest("spin(100) or sync()") == 0
    assert machine.state().gpus[0].busy_ns - before == 100 * MS


def test_a_launch_waits_when_too_many_are_queued(machine: Machine) -> None:
    process = machine.started()
    start = time.monotonic()
    assert process("spin(0.2, 1024 + 500)") == 0
    assert time.monotonic() - start >= 0.1
    assert process("sync()") == 0
    assert machine.state().gpus[0].busy_ns == 1524 * MS // 5


def test_gpus_work_at_the_same_time(machine: Machine) -> None:
    one, two = machine.process(CUDA_VISIBLE_DEVICES="0"), machine.process(CUDA_VISIBLE_DEVICES="1")
    for process in (one, two):
        assert process("start()") == 0

    def seconds_of_both() -> float:
        start = time.monotonic()
        for process in (one, two):
            process.send("spin(50, 8) or sync()")
        assert [one.receive(), two.receive()] == [0, 0]
        return time.monotonic() - start

    # Real time: on a busy machine, any one try may be late.
    tries = next(tries for tries in range(1, 10) if seconds_of_both() < 0.75)
    assert [gpu.busy_ns for gpu in machine.state().gpus] == [tries * 400 * MS] * 2


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("cu.cuLaunchKernel(function(), 0, 1, 1, 32, 1, 1, 0, None, None, None)", 1),
        ("cu.cuLaunchKernel(function(), 1, 1, 1, 1025, 1, 1, 0, None, None, None)", 1),
        ("cu.cuLaunchKernel(None, 1, 1, 1, 32, 1, 1, 0, None, None, None)", 400),
        ("cu.cuLaunchKernel(function(b'empty'), 1, 1, 1, 32, 1, 1, 0, None, None, None)", 0),
        ("cu.cuLaunchKernel(function(b'any'), 1, 1, 1, 32, 1, 1, 0, None, None, None)", 0),
        ("cu.cuLaunchCooperativeKernel(function(b'any'), 160, 1, 1, 1024, 1, 1, 0, None, None)", 0),
        ("cu.cuLaunchCooperativeKernel(function(b'any'), 161, 1, 1, 1024, 1, 1, 0, None, None)", 720),
        ("cu.cuEventQuery(None)", 400),
    ],
)
def test_launches_that_are_refused_and_not(machine: Machine, call: str, code: int) -> None:
    process = machine.started()
    assert process(call) == code
    assert process("sync()") == 0


def test_host_functions_run_after_the_work_before_them(machine: Machine) -> None:
    process = machine.started()
    process("globals().update(calls=[], hook=ctypes.CFUNCTYPE(None, c_void_p)(lambda data: calls.append(time())))")
    process("globals().update(time=__import__('time').monotonic, begin=__import__('time').monotonic())")
    assert process("spin(50) or cu.cuLaunchHostFunc(None, hook, None) or len(calls)") == 0
    assert process("sync() or [c - begin >= 0.05 for c in calls]") == [True]


def test_graphs_take_the_time_of_their_kernels(machine: Machine) -> None:
    process = machine.started()
    on = process("stream()")
    code, ready = process(f"captured({on}, [10, 5, 5])")
    assert code == 0
    assert machine.state().gpus[0].busy_ns == 0
    assert process(f"launch_graph({ready}, {on}) or launch_graph({ready}, {on}) or sync()") == 0
    assert machine.state().gpus[0].busy_ns == 40 * MS
    assert process(f"cu.cuGraphExecDestroy(c_void_p({ready}))") == 0
    assert process(f"launch_graph({ready}, {on})") == 1


def test_waiting_for_a_capturing_stream_spoils_the_capture(machine: Machine) -> None:
    process = machine.started()
    on = process("stream()")
    assert process(f"cu.cuStreamBeginCapture_v2(c_void_p({on}), 0) or sync()") == 900
    assert process(f"cu.cuStreamEndCapture(c_void_p({on}), byref(c_void_p()))") == 901
    assert process(f"spin(1, 1, {on}) or sync()") == 0
    assert process("cu.cuStreamBeginCapture_v2(None, 0)") == 900
