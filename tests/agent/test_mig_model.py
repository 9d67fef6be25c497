"""MIG for grants under whatever may happen: random pods, agents that die, reboots, processes, and people who cut too.

Pods get places as placement gives them: next to what is granted and what others made. Whatever comes, no one's instance
is removed or given to two, no GPU is in two modes, and once nothing fails every pod starts; when all are gone, so is
all that was made.
"""

import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs

from lamina.core.gpus import Mode
from lamina.core.grants import MigInstance, Share
from lamina.core.mig import Placed
from lamina.core.mig_cards import MIG_CARDS
from lamina.errors import LaminaError
from lamina.ports.kube import PODS
from lamina.ports.nvml import FakeNvml, GpuProcess
from lamina.ports.nvml import MigInstanceFacts as Made
from tests.agent.mig_nodes import FACTS, admitted, look, partitioned_node, start
from tests.worlds.deaths import Life

A100 = MIG_CARDS["A100-40GB"]
GPUS = [facts.uuid for facts in FACTS]
STEPS = 80


class PartitionedGpus:
    """What is true, apart from what the agent thinks. `running` are the pods whose containers run."""

    def __init__(self, root: Path, dice: random.Random) -> None:
        self.node = partitioned_node(root)
        self.dice = dice
        self.granted: dict[str, Share] = {}
        self.names: dict[str, str] = {}
        self.running: set[str] = set()
        self.theirs: list[tuple[str, Made]] = []
        self.count = 0

    @property
    def nvml(self) -> FakeNvml:
        return self.node.nvml

    def taken(self, gpu: str) -> list[Placed]:
        """Places that are granted, or are others'."""
        granted = {Placed(s.mig.profile, s.mig.start) for s in self.granted.values() if s.gpu == gpu and s.mig}
        return [*granted | {Placed(made.profile, made.start) for on, made in self.theirs if on == gpu}]

    async def admit(self) -> None:
        gpu, profile = self.dice.choice(GPUS), self.dice.choice(A100.profiles[:5])
        modes = {share.mode for share in self.granted.values() if share.gpu == gpu}
        if self.dice.random() < 0.3:
            modes = set()  # placement knew less than there was
        share = Share(gpu=gpu, memory_mib=1000)
        if modes != {Mode.QUOTA} and (self.taken(gpu) or self.dice.random() < 0.7):
            starts = A100.places(profile, self.taken(gpu))
            if not starts:
                return
            place = MigInstance(profile=profile.name, start=self.dice.choice(starts))
            share = structs.replace(share, mode=Mode.MIG, mig=place)
        self.count += 1
        name = f"p{self.count}"
        self.granted[name] = share
        self.names[name] = await admitted(self.node, name, share)

    async def begin(self) -> None:
        """Kubelet starts a container, for the first time or again."""
        if not self.granted:
            return
        name = self.dice.choice([*self.granted])
        try:
            await start(self.node, name)
            self.running.add(name)
        except LaminaError:
            if name in self.running:
                self.running.remove(name)  # its container had ended, or kubelet would not have asked

    async def end(self, name: str = "") -> None:
        if self.granted:
            name = name or self.dice.choice([*self.granted])
            self.running.discard(name)
            del self.granted[name]
            self.node.kubelet.listed[:] = [each for each in self.node.kubelet.listed if each.pod != name]
            await self.node.kube.delete(PODS, name, namespace="default")

    async def reconcile(self) -> None:
        look(self.node)
        try:
            await self.node.releaser.reconcile()
            await self.node.on_demand.reconcile()
        except LaminaError:
            assert self.nvml.broken

    async def die(self) -> None:
        """The agent dies somewhere in the midst of what it does."""
        act = self.dice.choice([self.begin, self.reconcile])
        broken, self.nvml.broken = self.nvml.broken, ""
        await self.node.dies(Life(self.dice.randrange(16), torn=self.dice.random() < 0.5), act)
        self.nvml.broken = broken

    async def reboot(self) -> None:
        self.nvml.instances.clear()
        self.nvml.running.clear()
        self.nvml.present = list(FACTS)
        self.theirs.clear()
        self.running.clear()
        shutil.rmtree(self.node.places.cdi, ignore_errors=True)
        look(self.node)
        self.node.start()

    async def use(self) -> None:
        """A process begins in an instance that is in use, or one ends."""
        if self.nvml.running and self.dice.random() < 0.6:
            del self.nvml.running[self.dice.choice([*self.nvml.running])]
            return
        uuids = [made.uuid for _, made in self.theirs]
        uuids += [self.device(name).uuid for name in self.running if self.granted[name].mig]
        if uuids:
            self.nvml.running[self.dice.choice(uuids)] = (GpuProcess(7, 1),)

    async def partition_by_hand(self) -> None:
        gpu, profile = self.dice.choice(GPUS), self.dice.choice(A100.profiles)
        there = [Placed(each.profile, each.start) for each in self.nvml.instances.get(gpu, ())]
        starts = A100.places(profile, {*self.taken(gpu), *there})
        on = next(each.mig_enabled for each in self.nvml.present if each.uuid == gpu)
        in_quota = any(s.gpu == gpu and s.mig is None for s in self.granted.values())
        if starts and on and not in_quota and not self.nvml.broken:
            self.theirs.append((gpu, await self.nvml.create_mig(gpu, Placed(profile.name, self.dice.choice(starts)))))

    async def change_policy(self) -> None:
        self.node.partitionable = (
            None if self.dice.random() < 0.2 else set(self.dice.sample(GPUS, self.dice.randrange(3)))
        )

    async def fall_silent(self) -> None:
        self.nvml.broken = "" if self.nvml.broken else "Driver Not Loaded"

    def device(self, pod: str) -> Made:
        """The instance that is where the pod's grant says."""
        share = self.granted[pod]
        assert share.mig is not None
        place = Placed(share.mig.profile, share.mig.start)
        [made] = [each for each in self.nvml.instances[share.gpu] if Placed(each.profile, each.start) == place]
        return made

    def check(self) -> None:
        for gpu, made in self.theirs:
            assert made in self.nvml.instances[gpu], "what others made was removed"
        for name in self.running:
            share, edits = self.granted[name], self.node.spec(self.names[name])
            assert edits is not None
            [seen] = [each.partition("=")[2] for each in edits["env"]]
            on = next(each.mig_enabled for each in self.nvml.present if each.uuid == share.gpu)
            assert on == (share.mig is not None), "a container runs on a GPU in another mode"
            assert seen and seen == (share.gpu if share.mig is None else self.device(name).uuid)

    async def settle_down(self) -> None:
        """Nothing is in the way any more: every pod starts that is placed in the mode of the others of its GPU."""
        self.nvml.broken, self.node.partitionable = "", set(GPUS)
        for name in [name for name, share in self.granted.items() if share.mig is None and self.taken(share.gpu)]:
            await self.end(name)
        self.nvml.running.clear()
        await self.reconcile()
        for name in self.granted:
            await start(self.node, name)
            self.running.add(name)
        self.check()


@pytest.mark.parametrize("seed", range(12))
async def test_no_container_ever_loses_or_shares_an_instance(tmp_path: Path, seed: int) -> None:
    world = PartitionedGpus(tmp_path, random.Random(seed))
    steps: list[Callable[[], Awaitable[None]]] = [
        *[world.admit] * 4, *[world.begin] * 5, *[world.end] * 3, *[world.reconcile] * 3, *[world.use] * 2,
        *[world.die] * 5, world.reboot, world.partition_by_hand, world.change_policy, world.fall_silent,
    ]  # fmt: skip
    for _ in range(STEPS):
        await world.dice.choice(steps)()
        world.check()
    await world.settle_down()
    while world.granted:
        await world.end()
    world.node.partitionable = set()
    await world.reconcile()
    assert sorted(each for found in world.nvml.instances.values() for each in found) == sorted(
        m for _, m in world.theirs
    )
    assert not world.node.made.instances
    assert world.node.made.modes <= {gpu for gpu, _ in world.theirs}
