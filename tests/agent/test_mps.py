"""The daemons of MPS: started, configured, watched, taken over, started again, and stopped."""

from pathlib import Path

import pytest

from lamina.agent.mps.clients import NO_EDITS, ClientLimits, client_limits, parse_limits
from lamina.agent.mps.lifecycle import MAX_LOG_BYTES, PAUSES_S, STEADY_S, RestartBackoff, end_daemons
from lamina.agent.mps.sharing import MpsSharing
from lamina.core.gpus import Mode
from lamina.core.mps import MpsDaemon, MpsState
from lamina.errors import BadInput, NotYet, Outside
from lamina.ports.mps import Home
from lamina.ports.nvml import GpuProcess
from lamina.ports.nvml.fake import fake_gpus
from tests.agent.mps import FACTS, FIRST, SECOND, MpsNode, older

SHARED = "nvidia.com/gpu.shared"
TEN = ClientLimits(memory_mib=4096, threads_percent=10)


@pytest.fixture
def node(tmp_path: Path) -> MpsNode:
    return MpsNode(tmp_path)


@pytest.mark.parametrize("replicas", range(2, 49))
def test_every_client_has_an_equal_part_rounded_down(replicas: int) -> None:
    found = client_limits(FACTS[0], replicas)
    assert found.memory_mib * replicas <= 40960 < (found.memory_mib + 1) * replicas
    assert found.threads_percent * replicas <= 100 < (found.threads_percent + 1) * replicas


def test_more_clients_than_a_gpu_takes_are_refused_in_nvidias_words() -> None:
    assert client_limits(older(FACTS[0]), 16)
    with pytest.raises(BadInput, match="invalid device maximum allowed replicas exceeded: 17 > 16"):
        client_limits(older(FACTS[0]), 17)
    with pytest.raises(BadInput, match="49 > 48"):
        client_limits(FACTS[0], 49)
    with pytest.raises(BadInput, match="NVML does not report its size"):
        client_limits(fake_gpus(1, memory_mib=0)[0], 2)


@pytest.mark.parametrize("memory", ["4096M", "4G", "4.0G", "0 4096M", "4096MiB", "4194304K", str(4 << 30)])
def test_a_daemons_own_words_are_understood(memory: str) -> None:
    assert parse_limits("10.0", memory) == TEN


@pytest.mark.parametrize(("threads", "memory"), [("", "4096M"), ("10", ""), ("odd", "odd")])
def test_nonsense_is_no_limit(threads: str, memory: str) -> None:
    assert parse_limits(threads, memory) is None


async def test_a_daemon_gets_its_limits_before_a_client_may_join(node: MpsNode) -> None:
    node.start(10)
    assert node.healthy_devices() == []
    await node.reconcile()
    assert node.mps.started == [FIRST, SECOND]
    assert node.mps.daemons[FIRST].commands[:2] == [
        "set_default_device_pinned_mem_limit 0 4096M",
        "set_default_active_thread_percentage 10",
    ]
    assert node.nvml.exclusive == {FIRST, SECOND}
    assert node.state() == ("ready", "")
    assert node.healthy_devices() == [FIRST, SECOND]
    inventory = node.offer.inventory.value
    assert inventory is not None
    assert [(each.gpu, each.memory_mib, each.threads_percent) for each in inventory.mps] == [
        (FIRST, 4096, 10),
        (SECOND, 4096, 10),
    ]
    assert [each.ready for each in node.events] == [True, True]


async def test_what_a_daemon_logs_stays_short_while_it_runs(node: MpsNode) -> None:
    """It logs each question of the agent, for weeks; the daemon has the file open and writes at its end."""
    node.start(10)
    await node.reconcile()
    log = node.daemons.home(FIRST).log / "control.log"
    with log.open("ab") as written:
        written.write(b"x" * MAX_LOG_BYTES)
        written.flush()
        await node.reconcile()
        assert log.stat().st_size == MAX_LOG_BYTES
        written.write(b"last\n")
        written.flush()
        await node.reconcile()
        assert log.read_bytes() == b""
        assert log.with_name("control.log.1").read_bytes() == b"x" * (MAX_LOG_BYTES - 5) + b"last\n"
        written.write(b"next\n")
        written.flush()
        assert log.read_bytes() == b"next\n"
    log.unlink()
    log.mkdir()
    await node.reconcile()
    assert node.state() == ("ready", ""), "the daemon still serves its clients"


async def test_a_daemon_that_ignores_its_limits_gets_no_clients(node: MpsNode) -> None:
    node.mps.deaf = True
    node.start(10)
    await node.reconcile()
    state, reason = node.state()
    assert state == "failed"
    assert "did not accept 4096 MiB and 10 % for each client; it has 0 MiB and 100 %" in reason
    assert node.healthy_devices() == []
    node.mps.deaf = False
    await node.reconcile()
    assert node.state() == ("ready", "")


async def test_gpus_with_too_few_clients_say_so_and_others_are_shared(tmp_path: Path) -> None:
    node = MpsNode(tmp_path, [older(FACTS[0]), FACTS[1]])
    node.start(20)
    await node.reconcile()
    assert node.state(FIRST) == ("failed", "invalid device maximum allowed replicas exceeded: 20 > 16")
    assert node.healthy_devices() == [SECOND]


async def test_no_daemon_starts_while_others_use_the_gpu_and_they_are_named(node: MpsNode) -> None:
    node.nvml.running[FIRST] = (GpuProcess(4711, 100),)
    node.start(10)
    await node.reconcile()
    assert node.state() == ("waiting", "process 4711 is using the GPU")
    assert (node.mps.started, node.nvml.exclusive, node.healthy_devices()) == ([SECOND], {SECOND}, [SECOND])
    node.nvml.running[FIRST] = tuple(GpuProcess(pid, None) for pid in range(4))
    await node.reconcile()
    assert node.state() == ("waiting", "processes 0, 1, 2 and 1 more are using the GPU")
    node.nvml.running.clear()
    await node.reconcile()
    assert node.state() == ("ready", "")


async def test_a_pod_with_a_share_keeps_mps_away(node: MpsNode) -> None:
    node.start(0)
    node.hold("training", FIRST, Mode.QUOTA)
    node.start(10)
    await node.reconcile()
    assert node.state() == ("waiting", "pod default/training is using the GPU")
    assert node.healthy_devices() == [SECOND]


async def test_the_next_agent_takes_a_daemon_over(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    node.nvml.running[FIRST] = (GpuProcess(1, 4000),)
    node.hold("client")
    node.start(10)
    assert node.state() == ("starting", "the agent has just started")
    await node.reconcile()
    assert node.state() == ("ready", "")
    assert node.mps.started == [FIRST, SECOND], "nothing was started twice"
    assert node.mps.ended == [FIRST, SECOND], "or ended, but for what could have been there before the first start"


async def test_a_daemon_that_runs_as_it_should_serves_without_a_break(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    node.mps.daemons[SECOND].percent = 50.0
    node.start(10)
    await node.daemons.take_over()
    assert (node.state(FIRST)[0], node.state(SECOND)[0]) == ("ready", "starting")
    assert node.healthy_devices() == [FIRST]
    node.events.clear()
    await node.reconcile()
    await node.reconcile()
    assert [(each.gpu, each.ready) for each in node.events if each.gpu == FIRST] == [(FIRST, True)], (
        "the agent that started it may have ended before it could say so"
    )
    node.start(4)
    await node.daemons.take_over()
    assert node.state(FIRST)[0] == "starting", "it has other limits than it should"


@pytest.mark.parametrize("at", range(12))
async def test_a_daemon_killed_at_any_command_is_ready_in_the_end(tmp_path: Path, at: int) -> None:
    node = MpsNode(tmp_path, FACTS[:1])
    answers = node.mps.ask
    left = at

    async def ask(home: Home, command: str) -> str:
        nonlocal left
        left -= 1
        if left == -1:
            node.mps.daemons.pop(home.gpu, None)
        return await answers(home, command)

    node.mps.ask = ask  # type: ignore[method-assign]
    node.start(10)
    for _ in range(12):
        await node.reconcile()
        daemon = node.mps.daemons.get(FIRST)
        if node.state()[0] == "ready":
            assert daemon is not None
            assert (daemon.memory, daemon.percent) == ("4096M", 10.0)
        await node.clock.advance(5)
    assert left < 0
    assert node.state() == ("ready", "")


@pytest.mark.parametrize("state", ["starting", "waiting", "failed", "stopping"])
def test_no_client_joins_a_daemon_that_is_not_ready(node: MpsNode, state: str) -> None:
    node.start(10)
    shared = MpsSharing(node.daemons, node.offer, active=True)
    with pytest.raises(NotYet, match="is not started yet"):
        shared.edits(SHARED, FIRST)
    node.offer.update(daemons={FIRST: MpsDaemon(gpu=FIRST, state=MpsState(state), reason="so")})
    with pytest.raises(NotYet, match=f"is {state}: so"):
        shared.edits(SHARED, FIRST)
    node.offer.update(daemons={FIRST: MpsDaemon(gpu=FIRST, state=MpsState.READY)})
    env, mounts = shared.edits(SHARED, FIRST)
    assert env == {"CUDA_MPS_PIPE_DIRECTORY": "/mps/nvidia.com/gpu.shared/pipe"}
    assert [(each.host, each.container, each.writable) for each in mounts] == [
        (node.root / "mps" / FIRST / "pipe", "/mps/nvidia.com/gpu.shared/pipe", True),
        (node.root / "mps" / FIRST / "shm", "/dev/shm", True),
    ]
    assert MpsSharing(node.daemons, node.offer, active=False).edits(SHARED, FIRST) == NO_EDITS


async def test_while_a_daemon_is_there_containers_of_other_modes_do_not_start(node: MpsNode) -> None:
    node.start(10)
    assert all(state.healthy for state in node.offer.state.units_without_mps.values())
    node.nvml.running[FIRST] = (GpuProcess(7, 1),)
    await node.reconcile()
    assert [uuid for uuid, state in node.offer.state.units_without_mps.items() if not state.healthy] == [SECOND]
    assert node.offer.state.units_without_mps[SECOND].reason == "it is in mode mps, and its daemon is ready"
    assert node.offer.gpus[SECOND].healthy


async def test_a_pod_that_comes_while_a_daemon_is_about_to_start_keeps_it_away(node: MpsNode) -> None:
    node.start(10)
    processes = node.nvml.processes

    async def slow(uuid: str) -> tuple[GpuProcess, ...]:
        if uuid == FIRST and not node.record.allocations:
            node.hold("quick", FIRST, Mode.QUOTA)
        return await processes(uuid)

    node.nvml.processes = slow  # type: ignore[method-assign]
    await node.reconcile()
    assert node.state() == ("waiting", "pod default/quick is using the GPU")
    assert FIRST not in node.nvml.exclusive


async def test_a_daemon_that_died_is_started_again_once_its_clients_are_gone(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    del node.mps.daemons[FIRST]
    node.nvml.running[FIRST] = (GpuProcess(12, 4000),)
    await node.clock.advance(PAUSES_S[0])
    await node.reconcile()
    assert node.state() == ("waiting", "process 12 is using the GPU")
    assert node.healthy_devices() == [SECOND]
    node.nvml.running.clear()
    await node.reconcile()
    assert node.state() == ("ready", "")
    assert node.mps.started == [FIRST, SECOND, FIRST]


async def test_pods_are_told_once_that_their_daemon_ended(node: MpsNode) -> None:
    """Any container that is root can end it by its pipe."""
    node.start(10)
    await node.reconcile()
    node.hold("victim")
    node.hold("other", SECOND)
    await node.reconcile()
    assert await node.pod_events() == []
    del node.mps.daemons[FIRST]
    node.nvml.running[FIRST] = (GpuProcess(12, 4000),)
    await node.clock.advance(STEADY_S)
    await node.reconcile(3)
    assert await node.pod_events() == [("victim", "MpsEnded", 1)]
    node.nvml.running.clear()
    for _ in range(2):
        await node.reconcile()
        assert node.state() == ("ready", "")
        await node.clock.advance(STEADY_S)
    node.mps.daemons[FIRST].hangs = True
    await node.reconcile(2)
    assert await node.pod_events() == [("victim", "MpsEnded", 1)]
    await node.reconcile()
    assert await node.pod_events() == [("victim", "MpsEnded", 2)]


@pytest.mark.parametrize("replicas", [10, 0])
async def test_the_first_daemon_of_a_gpu_ends_for_none_of_its_clients(tmp_path: Path, replicas: int) -> None:
    node = MpsNode(tmp_path)
    node.start(replicas)
    node.hold("first")
    await node.reconcile(2)
    assert node.state() == ("ready" if replicas else "none", "")
    assert await node.pod_events() == []


async def test_the_next_agent_tells_pods_of_a_daemon_that_ended_meanwhile(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    node.hold("victim")
    del node.mps.daemons[FIRST]
    node.start(10)
    await node.reconcile()
    assert await node.pod_events() == [("victim", "MpsEnded", 1)]


async def test_a_daemon_that_keeps_dying_is_tried_ever_more_seldom(tmp_path: Path) -> None:
    node = MpsNode(tmp_path, FACTS[:1])
    node.start(10)
    starts = []
    for _ in range(60):
        await node.reconcile()
        starts.append(len(node.mps.started))
        node.mps.daemons.clear()
        await node.clock.advance(1)
    assert starts[0] == 1
    assert 5 <= starts[-1] <= 9, "after 1, 2, 5, 10 and 30 s"


async def test_a_program_that_cannot_be_started_is_a_state_and_no_end(node: MpsNode) -> None:
    node.mps.refuses = "nvidia-cuda-mps-control cannot be run: No such file or directory"
    node.start(10)
    await node.reconcile(3)
    assert node.state() == ("failed", node.mps.refuses)
    assert len(node.events) == 2, "once for each GPU"
    node.mps.refuses = ""
    await node.clock.advance(PAUSES_S[0])
    await node.reconcile()
    assert node.state() == ("ready", "")


async def test_a_daemon_that_hangs_is_ended_at_the_third_silence(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    node.mps.daemons[FIRST].hangs = True
    await node.reconcile()
    assert node.state()[0] == "failed"
    assert "gives no answer" in node.state()[1]
    await node.reconcile()
    assert FIRST not in node.mps.ended[2:]
    await node.clock.advance(PAUSES_S[0])
    await node.reconcile()
    assert node.state() == ("ready", "")
    assert node.mps.ended[2:] == [FIRST]


async def test_limits_that_were_changed_are_set_again(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    node.mps.daemons[FIRST].percent = 90.0
    node.nvml.exclusive.clear()
    await node.reconcile()
    assert node.mps.daemons[FIRST].percent == 10.0
    assert node.nvml.exclusive == {FIRST, SECOND}
    assert node.state() == ("ready", "")


async def test_a_sick_gpu_gets_no_daemon(node: MpsNode) -> None:
    node.healthy = False
    node.start(10)
    await node.reconcile()
    assert node.state() == ("waiting", "the GPU is unhealthy: the driver reported XID 79")
    node.healthy = True
    node.observe()
    await node.reconcile()
    assert node.state() == ("ready", "")


async def test_other_limits_wait_for_the_last_client(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    name = node.hold("client")
    node.start(4)
    await node.reconcile()
    waiting = "pod default/client is still running with 4096 MiB and 10 % for each client"
    assert node.state() == ("waiting", waiting)
    assert node.state(SECOND) == ("stopping", "the configuration does not need it, or needs other limits")
    await node.reconcile()
    assert node.healthy_devices() == [SECOND], "the idle GPU already has its new limits"
    node.record.drop([name])
    await node.reconcile(2)
    assert node.state() == ("ready", "")
    assert node.mps.daemons[FIRST].memory == "10240M"


async def test_an_unneeded_daemon_ends_with_its_last_client_and_leaves_nothing(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    name = node.hold("client")
    node.start(0)
    await node.reconcile(2)
    assert sorted(node.mps.daemons) == [FIRST]
    inventory = node.offer.inventory.value
    assert inventory is not None
    assert [gpu.by_grant for gpu in inventory.gpus] == [False, True], "no share next to a client"
    del node.mps.daemons[FIRST]
    await node.reconcile()
    assert node.mps.daemons[FIRST].memory == "4096M", "the remaining client is served"
    node.record.drop([name])
    await node.reconcile(2)
    assert node.traces() == ([], [], [], b"{}")
    inventory = node.offer.inventory.value
    assert inventory is not None
    assert inventory.mps == ()
    assert [gpu.by_grant for gpu in inventory.gpus] == [True, True]


async def test_until_the_daemon_ends_the_gpu_is_used_in_no_other_mode(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    node.start(0)
    inventory = node.offer.inventory.value
    assert inventory is not None
    assert [(gpu.by_grant, gpu.mode) for gpu in inventory.gpus] == [(False, Mode.MPS)] * 2


async def test_a_gpu_that_the_label_partitions_keeps_its_daemon_only_for_its_clients(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    name = node.hold("client")
    node.offer.update(to_partition=frozenset({FIRST, SECOND}))
    await node.reconcile(2)
    assert sorted(node.mps.daemons) == [FIRST]
    node.record.drop([name])
    await node.reconcile(2)
    assert node.traces() == ([], [], [], b"{}")
    node.offer.update(to_partition=frozenset())
    await node.reconcile(2)
    assert sorted(node.mps.daemons) == sorted([FIRST, SECOND])


async def test_no_daemon_starts_on_a_gpu_that_the_label_begins_to_partition(node: MpsNode) -> None:
    node.start(10)
    processes = node.nvml.processes

    async def meanwhile(uuid: str) -> tuple[GpuProcess, ...]:
        node.offer.update(to_partition=frozenset({FIRST}))
        return await processes(uuid)

    node.nvml.processes = meanwhile  # type: ignore[method-assign]
    await node.reconcile()
    assert node.state() == ("waiting", "the node's label partitions the GPU")
    assert sorted(node.mps.daemons) == [SECOND]


async def test_a_node_that_is_not_selected_keeps_no_daemon(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    node.offer.update(selected=False)
    await node.reconcile(2)
    assert node.traces() == ([], [], [], b"{}")


async def test_another_folder_is_taken_when_the_old_one_is_given_up(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    node.start(10, root="other-mps")
    await node.reconcile(2)
    assert node.state() == ("ready", "")
    assert sorted(path.name for path in (node.root / "other-mps").iterdir()) == [FIRST, SECOND]
    assert list((node.root / "mps").iterdir()) == []


async def test_what_a_dead_agent_left_of_mps_is_taken_back_and_what_others_set_is_not(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    node.nvml.exclusive.add("GPU-theirs")
    assert await end_daemons(node.root / "mps.json", node.mps, node.nvml, node.files, node.clock) == []
    assert node.traces() == ([], ["GPU-theirs"], [], b"{}")


async def test_gpus_whose_compute_mode_cannot_be_given_back_are_named_with_the_command(node: MpsNode) -> None:
    node.start(10)
    await node.reconcile()
    node.nvml.broken = "Driver Not Loaded"
    failures = await end_daemons(node.root / "mps.json", node.mps, node.nvml, node.files, node.clock)
    commands = [f"nvidia-smi -i {gpu} -c DEFAULT" for gpu in (FIRST, SECOND)]
    assert all(command in each for command, each in zip(commands, failures, strict=True))
    (node.root / "mps.json").write_text("[")
    (sentence,) = await end_daemons(node.root / "mps.json", node.mps, node.nvml, node.files, node.clock)
    assert "cannot read the list of MPS daemons" in sentence


def test_a_list_of_daemons_that_is_not_understood_stops_the_agent(node: MpsNode) -> None:
    (node.root / "mps.json").write_text("{")
    with pytest.raises(Outside, match=r"cannot read the list of MPS daemons .*mps\.json"):
        node.start(10)


def test_pauses_start_over_after_a_long_run() -> None:
    backoff = RestartBackoff()
    for _ in range(5):
        backoff.record_start(0)
    assert not backoff.may_start(PAUSES_S[-1] - 1)
    backoff.record_success(1)
    backoff.record_success(1 + STEADY_S)
    assert backoff.may_start(1 + STEADY_S)
