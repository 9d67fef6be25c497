"""Clients of MPS on a simulated GPU: side by side, each with its percentage and its memory."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simgpu.machines import Machine
from tests.simgpu.mig_scripts import PARTITION, TWO_HALVES, script
from tests.simgpu.mps import PROGRAM, Daemon
from tests.simgpu.nvml_queries import nvml
from tests.waiting import wait_until

OUT_OF_MEMORY, UNAVAILABLE, NO_CONNECTION, RPC_FAILURE, NOT_READY, TOO_MANY = 2, 46, 805, 806, 807, 808
EXCLUSIVE = "import pynvml as n; n.nvmlInit(); n.nvmlDeviceSetComputeMode(n.nvmlDeviceGetHandleByIndex(0), 3)"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "machine", "gpus:\n- {model: A100-PCIE-40GB, count: 2}\n")
    yield made
    made.close()


@pytest.fixture
def daemon(machine: Machine, tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(machine, tmp_path)
    yield made
    made.end()


def test_it_speaks_the_control_programs_words(daemon: Daemon) -> None:
    assert daemon.ask("get_default_active_thread_percentage", "get_default_device_pinned_mem_limit 0") == [
        "100.0",
        "0G",
    ]
    daemon.ask("set_default_device_pinned_mem_limit 0 4096M", "set_default_active_thread_percentage 10")
    assert daemon.ask("get_default_active_thread_percentage") == ["10.0"]
    assert daemon.ask("get_default_device_pinned_mem_limit 0") == ["4096M"]
    assert daemon.ask("get_server_list") == []
    daemon.ask("start_server -uid 0")
    assert len(daemon.ask("get_server_list")) == 1
    assert daemon.ask("no_such") == ["Unknown command: no_such"]
    again = daemon.machine.run(*PROGRAM, "-d", **daemon._own)
    assert (again.returncode, again.stderr) == (1, "An instance of this daemon is already running\n")
    assert "Cmd:set_default_device_pinned_mem_limit 0 4096M" in (daemon.log / "control.log").read_text()
    daemon.ask("quit")
    wait_until(lambda: daemon.ask("get_server_list") == ["Cannot find MPS control daemon process"])
    assert not (daemon.pipe / "control").exists()


def test_a_client_sees_the_gpus_of_its_daemon_and_no_others(machine: Machine, tmp_path: Path) -> None:
    second = machine.state().gpus[1].uuid
    daemon = Daemon(machine, tmp_path / "d", second)
    assert machine.started(**daemon.env)("uuids()") == [second]
    daemon.end()


def test_clients_run_at_the_same_time_each_on_its_part(machine: Machine, daemon: Daemon) -> None:
    daemon.ask("set_default_active_thread_percentage 25")
    clients = [machine.started(**daemon.env) for _ in range(4)]
    for client in clients:
        client.send("[spin(10), e := event(), spin(20), f := event(), sync(), elapsed(e, f)]")
    taken = [client.receive()[-1] for client in clients]
    assert all(code == 0 for code, _ in taken)
    # With time slices, each would wait for the others. A quarter of the GPU takes four times as long in any case.
    assert [ms for _, ms in taken] == pytest.approx([80.0] * 4, abs=0.5)
    processes = [each for each in machine.state().gpus[0].processes if each.mps_percent]
    assert [(each.mps_percent, each.queued_ns) for each in processes] == [(25, 0)] * 4
    assert [each.busy_ns for each in processes] == [30_000_002] * 4, "with 1 ns for each event"


def test_alone_a_client_gets_no_more_than_its_part(machine: Machine, daemon: Daemon) -> None:
    daemon.ask("set_default_active_thread_percentage 50")
    client = machine.started(**daemon.env)
    began = time.monotonic()
    assert client("[spin(10, 5), sync()]") == [0, 0]
    assert time.monotonic() - began >= 0.099


def test_what_was_promised_twice_is_shared(machine: Machine, daemon: Daemon) -> None:
    """Without limits each client may use all; two then take twice as long as one."""
    first, second = machine.started(**daemon.env), machine.started(**daemon.env)
    first("spin(200)")
    (*_, (code, ms)) = second("[spin(10), e := event(), spin(20), f := event(), sync(), elapsed(e, f)]")
    assert (code, ms) == (0, pytest.approx(40.0, abs=0.5))


def test_a_client_may_ask_for_less_and_not_for_more(machine: Machine, daemon: Daemon) -> None:
    daemon.ask("set_default_active_thread_percentage 40")
    machine.started(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="10", **daemon.env)
    machine.started(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="90", **daemon.env)
    found = sorted(each.mps_percent for each in machine.state().gpus[0].processes if each.mps_percent)
    assert found == [10, 40]


def test_events_of_earlier_work_are_known(machine: Machine, daemon: Daemon) -> None:
    daemon.ask("set_default_active_thread_percentage 50")
    client = machine.started(**daemon.env)
    (*_, first, second) = client(
        "[spin(20), e := event(), spin(5), f := event(), sync(), "
        "spin(20), g := event(), spin(3), h := event(), sync(), "
        "spin(1), sync(), elapsed(e, f), elapsed(g, h)]"
    )
    assert [first, second] == [(0, pytest.approx(10.0, abs=0.3)), (0, pytest.approx(6.0, abs=0.3))]


def test_utilization_is_of_the_whole_gpu(machine: Machine, daemon: Daemon) -> None:
    daemon.ask("set_default_active_thread_percentage 30")
    client = machine.started(**daemon.env)
    client("[spin(10, 60), 0]")  # two seconds on its part
    time.sleep(1.3)  # the utilization is that of the last second of real time
    asked = (
        "import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetUtilizationRates(n.nvmlDeviceGetHandleByIndex(0)).gpu)"
    )
    assert int(machine.run(sys.executable, "-c", asked).stdout) == pytest.approx(30, abs=2)


@pytest.mark.parametrize("how", ["cuMemAlloc_v2", "cuMemAllocAsync"])
def test_each_process_is_held_to_its_memory(machine: Machine, daemon: Daemon, how: str) -> None:
    daemon.ask("set_default_device_pinned_mem_limit 0 4G")
    one, other = machine.started(**daemon.env), machine.started(**daemon.env)
    assert one(f"alloc(3000, '{how}')")[0] == 0
    assert one(f"alloc(1000, '{how}')")[0] == OUT_OF_MEMORY, "the context counts"
    assert one(f"alloc(500, '{how}')")[0] == 0
    assert other("alloc(3500)")[0] == 0, "the limit is each process's own"


def test_only_a_part_of_a_context_counts_to_the_limit_and_for_nvml(machine: Machine, daemon: Daemon) -> None:
    """On an H200, 167 of 517 MiB. The total stays that of the card, and the card lacks all of a context."""
    before = machine.state().gpus[0].used_mib
    client = machine.started(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=4096M", **daemon.env)
    own = 412 * 167 // 517
    assert client("used()") == 40_960 - (4096 - own), "what is not free of the total"
    assert machine.state().gpus[0].used_mib - before == 2 * 412, "of the client and of the server"
    assert client("alloc(1000)")[0] == 0
    for question in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses"):
        listed = nvml(machine, f"{{p.pid: p.usedGpuMemory >> 20 for p in nv.{question}(gpu0)}}")
        assert listed[client.pid] == own + 1000, question


@pytest.mark.parametrize("mib", [100, 133, 300])
def test_a_context_needs_no_more_of_the_limit_than_its_part(machine: Machine, daemon: Daemon, mib: int) -> None:
    process = machine.process(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=f"0={mib}M", **daemon.env)
    assert process("start()") == (0 if mib >= 133 else OUT_OF_MEMORY)
    assert machine.state().gpus[0].used_mib == 412 * (2 if mib >= 133 else 1), "of the server, and of a client if any"


@pytest.mark.parametrize(("percent", "seen"), [("1", 2), ("30", 32), ("50", 54), ("99", 106), ("100", 108)])
def test_a_client_sees_pairs_of_multiprocessors(machine: Machine, daemon: Daemon, percent: str, seen: int) -> None:
    client = machine.started(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=percent, **daemon.env)
    assert client("(lambda v: (cu.cuDeviceGetAttribute(byref(v), 16, 0), v.value))(c_int())") == (0, seen)


def test_a_daemon_of_a_mig_device_serves_it_alone(machine: Machine, tmp_path: Path) -> None:
    (first, _), (second, _) = script(machine, PARTITION, TWO_HALVES)
    daemon = Daemon(machine, tmp_path / "d", first)
    daemon.ask("set_default_device_pinned_mem_limit 0 4G", "set_default_active_thread_percentage 50")
    client = machine.started(**daemon.env, CUDA_VISIBLE_DEVICES=first)
    assert client("uuids()") == [first.replace("MIG-", "GPU-")], "the driver has no other form for it"
    assert [client(f"alloc({mib})")[0] for mib in (3000, 1000, 500)] == [0, OUT_OF_MEMORY, 0]
    neighbor = machine.started(CUDA_VISIBLE_DEVICES=second)
    assert neighbor("alloc(6000)")[0] == 0
    refused = machine.process(**daemon.env, CUDA_VISIBLE_DEVICES=second)("start()")
    assert refused != 0, "the daemon serves another device"
    daemon.end()


def test_exclusive_mode_admits_mps_clients_only(machine: Machine, daemon: Daemon) -> None:
    machine.run(sys.executable, "-c", EXCLUSIVE)
    client = machine.started(**daemon.env)
    assert client("alloc(10)")[0] == 0
    assert client("(lambda v: (cu.cuDeviceGetAttribute(byref(v), 20, 0), v.value))(c_int())") == (0, 3)
    assert machine.process()("start()") == UNAVAILABLE
    assert machine.process(CUDA_VISIBLE_DEVICES="1")("start()") == 0
    assert "E. Process" in machine.run(sys.executable, "-m", "lamina_lab.smi").stdout


def test_exclusive_mode_without_a_daemon_is_for_one_process(machine: Machine) -> None:
    machine.run(sys.executable, "-c", EXCLUSIVE)
    first = machine.started()
    assert machine.process()("start()") == UNAVAILABLE
    first.end()
    assert machine.process()("start()") == 0


def test_nvidia_smi_distinguishes_server_and_clients(machine: Machine, daemon: Daemon) -> None:
    client = machine.started(**daemon.env)
    rows = machine.run(sys.executable, "-m", "lamina_lab.smi").stdout.splitlines()
    (server,) = daemon.ask("get_server_list")
    kinds = {row.split()[4]: row.split()[5] for row in rows if "N/A  N/A" in row}
    assert kinds == {server: "C", str(client.pid): "M+C"}


def test_without_a_daemon_a_program_runs_by_itself(machine: Machine, tmp_path: Path) -> None:
    assert machine.process(CUDA_MPS_PIPE_DIRECTORY=str(tmp_path / "none"))("start()") == 0


def test_a_dead_daemon_refuses_new_clients_and_fails_the_old(machine: Machine, daemon: Daemon) -> None:
    client = machine.started(**daemon.env)
    (server,) = daemon.ask("get_server_list")
    daemon.kill()
    wait_until(lambda: not Path(f"/proc/{server}").exists()), "the server does not outlive it"
    wait_until(lambda: client("alloc(1)")[0] == RPC_FAILURE)
    assert client("spin(1)") == RPC_FAILURE
    assert machine.process(**daemon.env)("init()") == NO_CONNECTION
    client.end()
    daemon.start()
    assert machine.process(**daemon.env)("start()") == 0


def test_after_a_server_fault_no_client_is_admitted_until_all_have_ended(machine: Machine, daemon: Daemon) -> None:
    old = machine.started(**daemon.env)
    os.kill(int(daemon.ask("get_server_list")[0]), signal.SIGKILL)
    wait_until(lambda: old("spin(1)") == RPC_FAILURE)
    assert machine.process(**daemon.env)("init()") == NOT_READY
    old.end()
    wait_until(lambda: machine.process(**daemon.env)("start()") == 0)


def test_a_killed_client_leaves_nothing(machine: Machine, daemon: Daemon) -> None:
    client = machine.started(**daemon.env)
    client("[alloc(1000), spin(1000)]")
    client.kill()
    wait_until(lambda: daemon.ask("get_client_list") == [])
    after = machine.started(**daemon.env)
    assert after("[spin(50), e := event(), spin(5), f := event(), sync(), elapsed(e, f)]")[-1] == (
        0,
        pytest.approx(5, abs=0.3),
    )
    assert machine.used() < 1000


def test_no_more_clients_than_a_server_accepts(machine: Machine, daemon: Daemon) -> None:
    script = (
        "import os, socket\n"
        f"folder = os.open({str(daemon.pipe)!r}, os.O_PATH)\n"
        "held = []\n"
        "while True:\n"
        "    one = socket.socket(socket.AF_UNIX)\n"
        "    one.connect(f'/proc/self/fd/{folder}/control')\n"
        "    one.sendall(b'CLIENT 1 100\\n')\n"
        "    answer = one.makefile().readline().split()\n"
        "    if answer[0] != 'OK': break\n"
        "    held.append(one)\n"
        "print(len(held), answer)\n"
    )
    assert machine.run(sys.executable, "-c", script).stdout == f"48 ['ERROR', '{TOO_MANY}']\n"
