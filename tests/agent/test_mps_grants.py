"""Containers with grants in the mode mps: a daemon while there are any, limits of their own, and one mode at a time."""

import itertools
from pathlib import Path

import pytest
from msgspec import structs

from lamina.agent.mps.lifecycle import DaemonJournal
from lamina.core.gpus import MigInstance, Mode
from lamina.core.grants import ComputePolicy, Share
from lamina.core.mps import MpsState
from lamina.errors import NotYet
from lamina.ports.kube import PODS
from lamina.ports.mps import MpsServiceDown
from lamina.ports.nvml import GpuProcess
from tests.agent.mig_nodes import partitioned_node
from tests.agent.node import GPU, Node, container, share
from tests.worlds.deaths import Died, Life

FIRST, SECOND = GPU[:2]


def client(gpu: int = 0, memory: int = 4096, cores: int = 30) -> Share:
    policy = ComputePolicy.THREADS if cores else ComputePolicy.NONE
    return share(gpu, memory, cores=cores, policy=policy, mode=Mode.MPS)


async def start(node: Node, pod: str, *shares: Share) -> dict[str, str]:
    """Start a pod with a container for each share; the variables of the last one."""
    containers = [container(f"c{n}", each) for n, each in enumerate(shares)]
    await node.pod(pod, *containers)
    names = await node.admit(pod, {each.name: [f"{pod}-{each.name}"] for each in containers})
    for each in containers:
        await node.preparer.prepare([f"{pod}-{each.name}"])
    return variables(node, names[containers[-1].name])


def variables(node: Node, name: str) -> dict[str, str]:
    edits = node.spec(name)
    assert edits is not None
    return dict(each.split("=", 1) for each in edits["env"])


async def end(node: Node, pod: str) -> None:
    """The pod is deleted, and what it had is released."""
    await node.kube.delete(PODS, pod, namespace="default")
    node.kubelet.listed = [holder for holder in node.kubelet.listed if holder.pod != pod]
    await node.releaser.reconcile()


async def test_a_client_gets_its_part_and_the_facade(node: Node) -> None:
    env = await start(node, "p", client(memory=4096, cores=30))
    assert env == {
        "NVIDIA_VISIBLE_DEVICES": FIRST,
        "CUDA_MPS_PIPE_DIRECTORY": "/mps/nvidia.com/gpu/pipe",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=4096M",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "30",
    }
    name = node.record.allocations[0].name
    edits = node.spec(name)
    assert edits is not None
    targets = {mount["containerPath"]: mount["hostPath"] for mount in edits["mounts"]}
    home = node.root / "mps" / FIRST
    assert targets["/dev/shm"] == str(home / "shm")
    assert targets["/mps/nvidia.com/gpu/pipe"] == str(home / "pipe")
    assert node.limits(name) == "c0:0:4096"
    assert (node.mps.started, node.nvml.exclusive) == ([FIRST], {FIRST})
    assert node.mps.daemons[FIRST].percent == 100.0
    assert node.mps.daemons[FIRST].memory == f"{node.gpus[FIRST].facts.memory_mib}M"


async def test_parts_are_unequal_and_a_container_without_one_has_all_processors(node: Node) -> None:
    first = await start(node, "a", client(memory=4096, cores=10))
    second = await start(node, "b", client(memory=20000, cores=60))
    third = await start(node, "c", structs.replace(client(memory=1000, cores=0), most_memory_mib=3000))
    assert [each.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") for each in (first, second, third)] == ["10", "60", None]
    memory = [each["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] for each in (first, second, third)]
    assert memory == ["0=4096M", "0=20000M", "0=3000M"]
    assert node.mps.started == [FIRST], "one daemon for all of them"


async def test_the_daemon_ends_with_its_last_client(node: Node) -> None:
    await start(node, "a", client())
    await start(node, "b", client())
    await end(node, "a")
    await node.daemons.reconcile()
    assert node.mps.daemons.keys() == {FIRST}
    await end(node, "b")
    await node.daemons.reconcile()
    assert (node.mps.daemons, node.nvml.exclusive) == ({}, set())
    assert DaemonJournal(node.root / "mps.json", node.files).gpus == frozenset()
    await node.daemons.reconcile()
    assert node.offer.state.daemons == {}


async def test_an_idle_gpu_leaves_the_mode_as_soon_as_it_is_needed_in_another(node: Node) -> None:
    await start(node, "a", client())
    await end(node, "a")
    env = await start(node, "b", share(0, 1000))
    assert "CUDA_MPS_PIPE_DIRECTORY" not in env
    assert (node.mps.daemons, node.nvml.exclusive) == ({}, set())
    await end(node, "b")
    assert "CUDA_MPS_PIPE_DIRECTORY" in await start(node, "c", client())


@pytest.mark.parametrize(
    ("first", "then"),
    list(itertools.permutations([client(), share(0, 1000), structs.replace(share(0, 1000), mode=Mode.WHOLE)], 2)),
)
async def test_no_gpu_is_in_two_modes(node: Node, first: Share, then: Share) -> None:
    await start(node, "a", first)
    if Mode.MPS not in (first.mode, then.mode):
        return
    with pytest.raises(NotYet, match=f"is in mode {first.mode} as long as pod default/a uses it"):
        await start(node, "b", then)
    assert (FIRST in node.mps.daemons) == (first.mode is Mode.MPS)


async def test_mig_and_mps_follow_each_other(tmp_path: Path) -> None:
    node = partitioned_node(tmp_path)
    instance = share(0, 4864, mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=6))
    await start(node, "a", client())
    with pytest.raises(NotYet, match="is in mode mps as long as pod default/a uses it"):
        await start(node, "b", instance)
    await end(node, "a")
    await node.preparer.prepare(["b-c0"])
    assert node.mps.daemons == {}
    with pytest.raises(NotYet, match="is in mode mig as long as pod default/b uses it"):
        await start(node, "c", client())
    await end(node, "b")
    await node.on_demand.reconcile()
    await node.preparer.prepare(["c-c0"])
    assert node.mps.daemons.keys() == {FIRST}


async def test_a_container_with_several_gpus_is_no_client(node: Node) -> None:
    await node.pod("p", container("main", client(0), client(1)))
    await node.admit("p", {"main": ["t0", "t1"]})
    with pytest.raises(NotYet, match='container "main": a client of MPS has one GPU, and the grant has several'):
        await node.preparer.prepare(["t0", "t1"])
    assert node.mps.started == []


async def test_nothing_starts_without_the_daemon(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.mps.refuses = "no such program"
    with pytest.raises(NotYet, match=f"MPS on {FIRST} is failed: no such program"):
        await start(node, "a", client())
    assert node.spec(node.record.allocations[0].name) is None
    node.mps.refuses = ""
    await node.clock.advance(60)
    node.nvml.running[FIRST] = (GpuProcess(4711, 100),)
    with pytest.raises(NotYet, match=f"MPS on {FIRST} is waiting: process 4711 is using the GPU"):
        await node.preparer.prepare(["a-c0"])
    node.nvml.running.clear()
    await node.preparer.prepare(["a-c0"])
    assert node.mps.daemons.keys() == {FIRST}

    async def down(*_: object) -> str:
        raise MpsServiceDown("the MPS service does not answer")

    monkeypatch.setattr(node.mps, "ask", down)
    with pytest.raises(NotYet, match="the MPS service does not answer"):
        await start(node, "b", client())


async def test_the_next_agent_finds_the_clients_and_their_daemon(node: Node) -> None:
    await start(node, "a", client())
    daemon = node.mps.daemons[FIRST]
    node.start()
    await node.daemons.take_over()
    assert node.offer.state.daemons[FIRST].state is MpsState.READY
    await node.daemons.reconcile()
    assert node.mps.daemons[FIRST] is daemon
    node.mps.daemons.clear()  # it was killed
    await node.daemons.reconcile()
    assert node.mps.started == [FIRST, FIRST]


async def test_what_the_node_offers_while_grants_share_by_mps(node: Node) -> None:
    await start(node, "a", client())
    node.offer.update()
    inventory = node.offer.inventory.value
    assert inventory is not None
    first, second = inventory.gpus[:2]
    assert (first.mode, first.by_grant, second.mode) == (Mode.MPS, True, None)
    assert [(each.gpu, each.state, each.for_grants) for each in inventory.mps] == [(FIRST, MpsState.READY, True)]
    await end(node, "a")
    node.offer.update()
    inventory = node.offer.inventory.value
    assert inventory is not None and inventory.gpus[0].by_grant, "while the daemon still runs"


@pytest.mark.parametrize(("then", "moments"), [("client", 12), ("quota", 6)])
async def test_killed_at_any_step_the_next_agent_comes_to_the_same_end(tmp_path: Path, then: str, moments: int) -> None:
    for at in itertools.count():
        node = Node(tmp_path / str(at))
        await start(node, "a", client())
        await end(node, "a")
        if then == "client":
            await node.daemons.reconcile()
        wanted = client() if then == "client" else share(0, 1000)
        await node.pod("b", container("c0", wanted))
        await node.admit("b", {"c0": ["b-c0"]})
        dead = await dies(node, at)
        node.start()
        await node.daemons.take_over()
        await node.preparer.prepare(["b-c0"])
        await node.daemons.reconcile()
        expected = {FIRST} if then == "client" else set()
        assert (set(node.mps.daemons), node.nvml.exclusive) == (expected, expected), at
        if not dead:
            assert at >= moments, "there are moments before and after all that the agent does"
            return


async def dies(node: Node, moment: int) -> bool:
    """Whether an agent that prepares the pod dies at this moment before or after a change of MPS or NVML."""
    life = Life()
    node.start(life)
    try:
        await node.daemons.take_over()
        life.left = moment
        await node.preparer.prepare(["b-c0"])
    except Died:
        return True
    return False
