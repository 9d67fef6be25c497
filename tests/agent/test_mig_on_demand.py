"""S1.3: a grant's MIG instance is made before its container starts and goes after it, whatever happens in between."""

import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs

from lamina.agent.health import GpuState
from lamina.agent.reconcile import reconcile
from lamina.errors import LaminaError, NotYet
from lamina.model.gpus import Mode
from lamina.model.grants import MigInstance, Share
from lamina.model.mig import Placed
from lamina.ports.files import Files
from lamina.ports.kube import PODS
from lamina.ports.nvml import FakeNvml, GpuProcess
from lamina.ports.nvml import MigInstance as MadeInstance
from lamina.ports.nvml.fake import fake_gpus
from tests.agent.node import Node, container
from tests.agent.test_crashes import Died, DyingFiles

FACTS = [
    structs.replace(gpu, mig_capable=True, pci_device=0x20B010DE)
    for gpu in fake_gpus(2, name="NVIDIA A100-SXM4-40GB", memory_mib=40960)
]
GPU = FACTS[0].uuid


def instance(profile: str = "1g.5gb", start: int = 6, *, gpu: str = GPU) -> Share:
    return Share(gpu=gpu, memory_mib=3000, mode=Mode.MIG, mig=MigInstance(profile=profile, start=start))


def cut_node(root: Path, files: Files | None = None) -> Node:
    """A node of two A100 with 40 GB."""
    return Node(root, files, FACTS)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return cut_node(tmp_path)


async def admitted(node: Node, name: str, *shares: Share) -> str:
    """A pod of one container with these shares, which kubelet has admitted; its CDI name."""
    await node.pod(name, container("main", *shares))
    tickets = [f"ticket-{name}-{number}" for number in range(len(shares))]
    return (await node.admit(name, {"main": tickets}))["main"]


async def start(node: Node, name: str, count: int = 1) -> None:
    """What kubelet does before each start of the pod's container."""
    await node.preparer.prepare([f"ticket-{name}-{number}" for number in range(count)])


async def end(node: Node, name: str) -> None:
    """The pod goes, and everything that was made for it."""
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, name, namespace="default")
    await node.releaser.sweep()
    await node.on_demand.sweep()


def places(node: Node, gpu: str = GPU) -> list[tuple[str, int]]:
    return sorted((each.profile, each.start) for each in node.nvml.instances.get(gpu, ()))


def look(node: Node) -> None:
    """The agent looks at its GPUs."""
    node.gpus = {each.uuid: GpuState(each) for each in node.nvml.present}


def on(node: Node, gpu: str = GPU) -> bool:
    return next(each.mig_enabled for each in node.nvml.present if each.uuid == gpu)


async def test_an_instance_is_made_seen_by_its_container_alone_and_destroyed_after_it(node: Node) -> None:
    name = await admitted(node, "p", instance())
    await start(node, "p")
    [made] = node.nvml.instances[GPU]
    assert (made.profile, made.start) == ("1g.5gb", 6)
    edits = node.spec(name)
    assert edits == {"env": [f"NVIDIA_VISIBLE_DEVICES={made.uuid}"]}
    assert node.files.names(node.places.containers) == []
    await start(node, "p")
    assert node.nvml.instances[GPU] == (made,)
    await end(node, "p")
    assert places(node) == []
    assert on(node)
    assert node.made.instances == frozenset()


async def test_a_container_may_have_several_of_one_gpu_or_of_several(node: Node) -> None:
    shares = (instance("3g.20gb", 4), instance("2g.10gb", 0), instance("1g.5gb", 2, gpu=FACTS[1].uuid))
    name = await admitted(node, "p", *shares)
    await start(node, "p", 3)
    by_place = {(gpu, each.start): each.uuid for gpu, found in node.nvml.instances.items() for each in found}
    wanted = [by_place[GPU, 0], by_place[GPU, 4], by_place[FACTS[1].uuid, 2]]
    edits = node.spec(name)
    assert edits is not None and edits["env"] == ["NVIDIA_VISIBLE_DEVICES=" + ",".join(wanted)]
    await end(node, "p")
    assert places(node) == places(node, FACTS[1].uuid) == []


async def test_what_others_hold_stays_when_a_pod_goes(node: Node) -> None:
    for name, start_at in (("a", 0), ("b", 1)):
        await admitted(node, name, instance(start=start_at))
        await start(node, name)
    node.kubelet.listed[:] = [each for each in node.kubelet.listed if each.pod == "b"]
    await node.kube.delete(PODS, "a", namespace="default")
    await node.releaser.sweep()
    await node.on_demand.sweep()
    assert places(node) == [("1g.5gb", 1)]


async def test_after_a_reboot_a_container_gets_its_instance_again(node: Node) -> None:
    name = await admitted(node, "p", instance())
    await start(node, "p")
    node.nvml.instances.clear()
    node.nvml.present = list(FACTS)
    node.start()
    await node.on_demand.sweep()
    assert places(node) == []
    await start(node, "p")
    assert places(node) == [("1g.5gb", 6)]
    edits = node.spec(name)
    assert edits is not None and edits["env"] == [f"NVIDIA_VISIBLE_DEVICES={node.nvml.instances[GPU][0].uuid}"]


async def test_an_instance_in_use_goes_when_its_process_has_ended(node: Node) -> None:
    await admitted(node, "p", instance())
    await start(node, "p")
    [made] = node.nvml.instances[GPU]
    node.nvml.running[made.uuid] = (GpuProcess(7, 1),)
    await end(node, "p")
    assert places(node) == [("1g.5gb", 6)]
    assert node.divided.left == ("GPU 0 keeps 1g.5gb at 6: it is in use by process 7",)
    await admitted(node, "next", instance())
    for _ in range(2):
        with pytest.raises(NotYet, match=r"1g.5gb at 6 of GPU 0 is in use by process 7"):
            await start(node, "next")
    node.nvml.running.clear()
    await start(node, "next")
    assert node.nvml.instances[GPU] == (made,)


async def test_a_container_that_starts_again_has_its_instance_whatever_runs_in_it(node: Node) -> None:
    await admitted(node, "p", instance())
    await start(node, "p")
    [made] = node.nvml.instances[GPU]
    node.nvml.running[made.uuid] = (GpuProcess(7, 1),)
    await start(node, "p")
    assert node.nvml.instances[GPU] == (made,)


async def test_what_pods_left_that_have_gone_is_not_in_the_way_of_the_next(node: Node) -> None:
    await admitted(node, "a", instance("1g.5gb", 0))
    await start(node, "a")
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, "a", namespace="default")
    await admitted(node, "b", instance("2g.10gb", 0))
    await start(node, "b")
    assert places(node) == [("2g.10gb", 0)]
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, "b", namespace="default")
    await admitted(node, "c", share_of(GPU))
    await start(node, "c")
    assert not on(node)


async def test_one_that_lamina_did_not_make_is_used_where_it_fits_and_never_destroyed(node: Node) -> None:
    await node.nvml.set_mig_mode(GPU, True)
    theirs = await node.nvml.create_mig(GPU, Placed("1g.5gb", 6))
    await admitted(node, "p", instance())
    node.nvml.running[theirs.uuid] = (GpuProcess(7, 1),)
    with pytest.raises(NotYet, match="in use by process 7"):
        await start(node, "p")
    node.nvml.running.clear()
    await start(node, "p")
    await end(node, "p")
    assert node.nvml.instances[GPU] == (theirs,)
    await admitted(node, "q", instance("2g.10gb", 4))
    await start(node, "q")
    await admitted(node, "r", instance("7g.40gb", 0))
    with pytest.raises(LaminaError, match=r"7g.40gb cannot begin at 0 of A100-40GB beside 1g.5gb at 6"):
        await start(node, "r")
    look(node)
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, "q", namespace="default")
    await node.kube.delete(PODS, "r", namespace="default")
    await node.releaser.sweep()
    await admitted(node, "s", share_of(GPU))
    with pytest.raises(NotYet, match=r"GPU 0 has 1g.5gb at 6, which Lamina may not destroy"):
        await start(node, "s")
    assert node.nvml.instances[GPU] == (theirs,)


def share_of(gpu: str) -> Share:
    return Share(gpu=gpu, memory_mib=1000)


async def test_an_idle_gpu_changes_its_mode_to_what_the_next_container_needs(node: Node) -> None:
    await admitted(node, "a", instance())
    await start(node, "a")
    look(node)
    await end(node, "a")
    name = await admitted(node, "b", share_of(GPU))
    await start(node, "b")
    assert not on(node)
    edits = node.spec(name)
    assert edits is not None and edits["env"] == [f"NVIDIA_VISIBLE_DEVICES={GPU}"]
    look(node)
    await end(node, "b")
    await admitted(node, "c", instance())
    await start(node, "c")
    assert on(node) and places(node) == [("1g.5gb", 6)]


async def test_a_busy_gpu_never_changes_its_mode(node: Node) -> None:
    await admitted(node, "a", instance())
    await start(node, "a")
    await admitted(node, "b", share_of(GPU))
    with pytest.raises(NotYet, match=f"{GPU} is in mode mig as long as default/a uses it.*in mode quota"):
        await start(node, "b")
    await admitted(node, "c", share_of(FACTS[1].uuid))
    await start(node, "c")
    await admitted(node, "d", instance(gpu=FACTS[1].uuid))
    with pytest.raises(NotYet, match="in mode quota as long as default/c uses it"):
        await start(node, "d")
    assert on(node) and not on(node, FACTS[1].uuid)


async def test_a_gpu_with_processes_of_others_is_not_cut(node: Node) -> None:
    node.nvml.running[GPU] = (GpuProcess(7, 1),)
    await admitted(node, "p", instance())
    with pytest.raises(NotYet, match="GPU 0 is in use by process 7; its MIG mode can change when it is idle"):
        await start(node, "p")
    assert not on(node)


@pytest.mark.parametrize("unknown", [False, True])
async def test_a_gpu_that_grants_may_not_cut_is_left_alone(node: Node, unknown: bool) -> None:
    node.cuttable = None if unknown else set()
    await admitted(node, "p", instance())
    with pytest.raises(NotYet, match="GPU 0 may not be cut for a grant"):
        await start(node, "p")
    assert not on(node)
    await node.nvml.set_mig_mode(GPU, True)
    look(node)
    await end(node, "p")
    await admitted(node, "q", share_of(GPU))
    with pytest.raises(NotYet, match="GPU 0 is cut by MIG and has nothing to share"):
        await start(node, "q")
    assert on(node)


async def test_two_pods_never_have_one_instance(node: Node) -> None:
    await admitted(node, "a", instance())
    await start(node, "a")
    await admitted(node, "b", instance())
    with pytest.raises(NotYet, match=r"1g.5gb at 6 of .* is in use by default/a"):
        await start(node, "b")


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ((Share(gpu=GPU, memory_mib=1, mode=Mode.MIG),), "does not say which"),
        ((instance(), share_of(FACTS[1].uuid)), "MIG instances beside other shares"),
        ((instance("1g.6gb", 0),), "has no MIG profile 1g.6gb"),
        ((instance("2g.10gb", 3),), "cannot begin at 3"),
    ],
)
async def test_a_grant_that_no_card_can_serve_is_refused(node: Node, shares: tuple[Share, ...], reason: str) -> None:
    await admitted(node, "p", *shares)
    with pytest.raises(LaminaError, match=reason):
        await start(node, "p", len(shares))
    assert places(node) == []


async def test_when_the_configuration_wants_no_mig_any_more_the_idle_gpu_is_as_before(node: Node) -> None:
    await admitted(node, "p", instance())
    await start(node, "p")
    node.cuttable = set()
    await node.on_demand.sweep()
    assert on(node) and places(node) == [("1g.5gb", 6)]
    await end(node, "p")
    assert not on(node) and places(node) == []
    assert node.made.gpus == frozenset()


async def test_a_mode_that_somebody_else_turned_on_stays(node: Node) -> None:
    await node.nvml.set_mig_mode(GPU, True)
    await admitted(node, "p", instance())
    await start(node, "p")
    node.cuttable = set()
    await end(node, "p")
    assert on(node) and places(node) == []


async def test_a_silent_driver_is_waited_for(node: Node) -> None:
    await admitted(node, "p", instance())
    node.nvml.broken = "Driver Not Loaded"
    with pytest.raises(LaminaError, match="Driver Not Loaded"):
        await start(node, "p")
    node.nvml.broken = ""
    await start(node, "p")
    node.nvml.broken = "Driver Not Loaded"
    with pytest.raises(LaminaError, match="Driver Not Loaded"):
        await end(node, "p")
    node.nvml.broken = ""
    await node.on_demand.sweep()
    assert places(node) == []


class Deaths(DyingFiles):
    """The process dies at its change number `at`, be it of the disk or of a GPU."""

    def strike(self) -> None:
        self._step()

    @property
    def due(self) -> bool:
        return self.left == 0 and self.torn


class DyingNvml(FakeNvml):
    """A driver that outlives the processes that use it. Where `torn` is set, an instance is left half made."""

    deaths: Deaths | None = None

    async def set_mig_mode(self, uuid: str, on: bool) -> bool:
        if self.deaths is not None:
            self.deaths.strike()
        return await super().set_mig_mode(uuid, on)

    async def create_mig(self, uuid: str, place: Placed) -> MadeInstance:
        if self.deaths is not None and self.deaths.due:
            await super().create_mig(uuid, place)
            self._halve(uuid, place)
        if self.deaths is not None:
            self.deaths.strike()
        return await super().create_mig(uuid, place)

    async def destroy_mig(self, uuid: str, instance: int) -> None:
        for each in self.instances[uuid]:
            if each.id == instance and self.deaths is not None and self.deaths.due:
                self._halve(uuid, Placed(each.profile, each.start))
        if self.deaths is not None:
            self.deaths.strike()
        await super().destroy_mig(uuid, instance)

    def _halve(self, uuid: str, place: Placed) -> None:
        found = self.instances[uuid]
        self.instances[uuid] = tuple(
            each._replace(uuid="") if (each.profile, each.start) == place else each for each in found
        )


async def dies(node: Node, deaths: Deaths, act: Callable[[], Awaitable[None]]) -> bool:
    """Whether the agent died of it. A new one has started then."""
    assert isinstance(node.nvml, DyingNvml)
    node.start(deaths)
    node.nvml.deaths = deaths
    try:
        await act()
        return False
    except Died:
        return True
    finally:
        node.nvml.deaths = None
        node.start()
        await reconcile(node.record, node.cluster, node.places, node.files)
        await node.on_demand.sweep()


def mortal(root: Path) -> Node:
    node = cut_node(root)
    node.nvml = DyingNvml(FACTS)
    node.start()
    return node


@pytest.mark.parametrize("torn", [False, True])
async def test_an_agent_that_dies_while_it_makes_an_instance_comes_to_the_same_end(tmp_path: Path, torn: bool) -> None:
    for at in itertools.count():
        node = mortal(tmp_path / str(at))
        name = await admitted(node, "p", instance(), instance("2g.10gb", 0))
        died = await dies(node, Deaths(at, torn=torn), lambda node=node: start(node, "p", 2))  # type: ignore[misc]
        await start(node, "p", 2)
        assert places(node) == [("1g.5gb", 6), ("2g.10gb", 0)], at
        edits = node.spec(name)
        uuids = [each.uuid for each in sorted(node.nvml.instances[GPU], key=lambda each: each.start)]
        assert edits is not None and edits["env"] == [f"NVIDIA_VISIBLE_DEVICES={','.join(uuids)}"], at
        assert all(uuids)
        await end(node, "p")
        node.cuttable = set()
        await node.on_demand.sweep()
        assert (places(node), on(node), node.made.gpus) == ([], False, frozenset()), at
        if not died:
            assert at > 7
            return


@pytest.mark.parametrize("torn", [False, True])
async def test_an_agent_that_dies_before_its_pod_comes_again_leaves_nothing(tmp_path: Path, torn: bool) -> None:
    for at in itertools.count():
        node = mortal(tmp_path / str(at))
        await admitted(node, "p", instance())
        died = await dies(node, Deaths(at, torn=torn), lambda node=node: start(node, "p"))  # type: ignore[misc]
        node.cuttable = set()
        await end(node, "p")
        assert (places(node), on(node), node.made.gpus) == ([], False, frozenset()), at
        assert all(allocation.bound is None for allocation in node.record.allocations)
        if not died:
            return


@pytest.mark.parametrize("torn", [False, True])
async def test_an_agent_that_dies_while_it_takes_away_comes_to_the_same_end(tmp_path: Path, torn: bool) -> None:
    for at in itertools.count():
        node = mortal(tmp_path / str(at))
        await node.nvml.set_mig_mode(FACTS[1].uuid, True)
        theirs = await node.nvml.create_mig(FACTS[1].uuid, Placed("1g.5gb", 0))
        await admitted(node, "p", instance(), instance("2g.10gb", 0), instance("1g.5gb", 1, gpu=FACTS[1].uuid))
        await start(node, "p", 3)
        node.cuttable = set()
        died = await dies(node, Deaths(at, torn=torn), lambda node=node: end(node, "p"))  # type: ignore[misc]
        await node.releaser.sweep()
        await node.on_demand.sweep()
        assert (places(node), on(node), node.made.gpus) == ([], False, frozenset()), at
        assert node.nvml.instances[FACTS[1].uuid] == (theirs,)
        if not died:
            assert at > 8
            return


async def test_a_half_made_instance_of_somebody_else_is_left_to_them(node: Node) -> None:
    await node.nvml.set_mig_mode(GPU, True)
    made = await node.nvml.create_mig(GPU, Placed("1g.5gb", 6))
    node.nvml.instances[GPU] = (made._replace(uuid=""),)
    await admitted(node, "p", instance())
    with pytest.raises(NotYet, match=r"1g.5gb at 6 of GPU 0 has no compute instance, and Lamina did not make it"):
        await start(node, "p")
    assert places(node) == [("1g.5gb", 6)]
