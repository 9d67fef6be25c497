"""One node whole: the real control part and the real agent over the fakes, with kubelet, people and accidents.

Nothing happens by itself: time is passed on, and between two moments everybody has done all that there is to do.
"""

import asyncio
import contextlib
import copy
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any
from unittest import mock

import jsonpatch
import msgspec
from msgspec import structs

from lamina.agent import configuration
from lamina.agent.run import agent
from lamina.agent.settings import COVER, LIBRARIES, AgentSettings
from lamina.control.admission import review
from lamina.control.binding import BindArgs
from lamina.control.configuration import follow_config_map
from lamina.model.grants import ContainerGrant, Grant
from lamina.model.mig import Placed
from lamina.model.mig_cards import MIG_CARDS
from lamina.ports.kube import CONFIG_MAPS, GRANTS, NODES, PODS, EventRecorder, NotFound, Object
from lamina.ports.kube.fake import FakeKube
from lamina.ports.mps import FakeMps
from lamina.ports.nvml import GpuFacts, GpuProcess, MigInstance
from lamina.ports.nvml.fake import fake_gpus
from lamina.ports.time_slices import FakeTimeSlices
from tests.control.binders import Bench
from tests.whole_node import kinds
from tests.whole_node.doors import Clock, Died, Door, Life, QuickFiles, TimedNvml, all_done
from tests.whole_node.kinds import NODE
from tests.whole_node.kubelet import Container, Kubelet, Pod, Registrations, is_device

CARD = MIG_CARDS["A100-40GB"]
FACTS = [
    structs.replace(gpu, mig_capable=True, pci_device=0x20B010DE)
    for gpu in fake_gpus(2, name="NVIDIA A100-SXM4-40GB", memory_mib=40960)
]
GPUS = [facts.uuid for facts in FACTS]
POLL_S = 10.0


async def _never(*args: Any, **more: Any) -> None:
    """In the place of the loop that lends time, which has no part in this and looks every 10 ms."""
    await asyncio.Event().wait()


class World:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = Clock()
        self.kube, self.mps, self.slices = FakeKube(), FakeMps(), FakeTimeSlices()
        self.nvml = TimedNvml(self.clock, FACTS)
        self.kubelet = Kubelet(root / "cdi", self.clock)
        self.files = QuickFiles()
        for folder in ("driver", "facade"):
            (root / folder).mkdir(parents=True)
            for library in (*LIBRARIES, COVER):
                (root / folder / library).write_text(library)
        self.settings = AgentSettings(
            node=NODE,
            kubelet_dir=root / "kubelet",
            cdi_dir=root / "cdi",
            state_dir=root / "state",
            driver_dir=root / "driver",
            facade_dir=root / "facade",
            mps_root=root / "mps",
            mps_shm=root / "shm",
            poll_s=POLL_S,
        ).checked()
        self.life = Life()
        self.task: asyncio.Task[None] | None = None
        self.parts: list[asyncio.Task[None]] = []
        self.theirs: list[tuple[str, MigInstance]] = []
        """Instances that somebody made by hand."""
        self.lost: dict[int, GpuFacts] = {}
        """GPUs that fell off the bus, by index."""
        self.count = 0

    @contextlib.contextmanager
    def doors(self) -> Any:
        """The agent's ways to kubelet and nvidia-smi lead to the fakes."""
        with contextlib.ExitStack() as stack:
            for name, fake in {
                "run.KubeletPodResources": lambda socket: self.kubelet,
                "run.NvidiaSmi": lambda: self.slices,
                "run.arbitrating": _never,
                "serving_kubelet.Registration": Registrations(self.kubelet),
            }.items():
                stack.enter_context(mock.patch(f"lamina.agent.{name}", fake))
            yield

    async def begin(self) -> None:
        await self.kube.create(NODES, {"metadata": {"name": NODE, "labels": {}}, "status": {}})
        meta = {"name": "lamina", "namespace": "lamina-system"}
        await self.kube.create(CONFIG_MAPS, {"metadata": meta, "data": {"lamina.yaml": kinds.text_of("default")}})
        await self.control_starts()
        await self.agent_starts()
        await self.time_passes(POLL_S)

    async def end(self) -> None:
        await self.agent_dies()
        await _ended(self.parts)

    async def control_starts(self) -> None:
        """The control part begins with an empty memory, after the one before it has ended."""
        await _ended(self.parts)
        self.control = Bench(self.kube, clock=self.clock.monotonic)  # type: ignore[arg-type]
        events = EventRecorder(self.kube, "lamina", now=self.clock.wall)
        following = follow_config_map(self.kube, self.control.configuration, events)
        works: list[Coroutine[Any, Any, None]] = [self.control.watching.run(), following]
        self.parts = [asyncio.create_task(each) for each in works]
        await all_done()

    async def agent_starts(self) -> None:
        self.life = Life()
        self.task = asyncio.create_task(self._agent())
        await all_done()

    async def _agent(self) -> None:
        kube, nvml, mps, files = (Door(each, self.life) for each in (self.kube, self.nvml, self.mps, self.files))
        await agent(
            self.settings,
            await configuration.read(self.kube, None, configuration.Kept(self.settings.configuration, self.files)),
            kube=kube,
            nvml=nvml,
            mps=mps,
            clock=self.clock,
            files=files,  # type: ignore[arg-type]
            stop=asyncio.Event(),
        )

    async def agent_dies(self) -> None:
        self.life.over = True
        if self.task is not None:
            await _ended([self.task])

    async def _looked_after(self) -> None:
        """An agent that has died is started again; one that ended by itself is a defect."""
        assert self.task is not None
        if self.life.over:
            await self.agent_dies()
            await self.agent_starts()
        elif self.task.done():
            self.task.result()
            raise AssertionError("the agent has ended")

    async def time_passes(self, seconds: float) -> None:
        await self._looked_after()
        await self.clock.advance(seconds)

    async def a_pod_comes(self, kind: str) -> str:
        """Admitted or refused; its name, or nothing."""
        self.count += 1
        pod = copy.deepcopy(kinds.PODS[kind])
        pod["metadata"] |= {"name": f"p{self.count}", "namespace": "default"}
        config, ledger = self.control.configuration.value, self.control.ledger
        verdict = review(pod, config, offered=ledger.offered_plainly)
        if not verdict.allowed:
            return ""
        await self.kube.create(PODS, jsonpatch.apply_patch(pod, list(verdict.patch)))
        return f"p{self.count}"

    async def pods(self) -> list[Object]:
        return (await self.kube.list(PODS)).items

    async def schedule(self) -> None:
        """What kube-scheduler does with the pods that wait."""
        for pod in await self.pods():
            meta = pod["metadata"]
            if pod["spec"].get("nodeName") or _over(pod) or not await self._counts(pod):
                continue
            if NODE in self.control.decisions.filter(pod, [NODE]).fitting:
                args = BindArgs(podName=meta["name"], podNamespace="default", podUID=meta["uid"], node=NODE)
                await self.control.binder.bind(args)
                await self.control.background.drain()

    async def _counts(self, pod: Object) -> bool:
        """Whether kubelet has told so many devices that this pod fits beside all that are bound."""
        beside = [each for each in await self.pods() if each["spec"].get("nodeName") and not _over(each)]
        for resource, wanted in _asked(pod).items():
            healthy = sum(self.kubelet.devices.get(resource, {}).values())
            if wanted + sum(_asked(each).get(resource, 0) for each in beside) > healthy:
                return False
        return True

    async def kubelet_works(self) -> None:
        """Pods that are gone end, new ones are admitted, and whatever does not run is started."""
        self.kubelet.silent = False
        listed = {pod["metadata"]["uid"]: pod for pod in await self.pods() if pod["spec"].get("nodeName")}
        for uid in self.kubelet.pods.keys() - listed.keys():
            self.kubelet.drop(uid)
        for uid, pod in listed.items():
            if uid not in self.kubelet.pods and not _over(pod):
                reason = await self.kubelet.admit(uid, pod["metadata"]["name"], pod["spec"])
                if reason:
                    await self.finish(pod["metadata"]["name"], "Failed")
        for admitted in list(self.kubelet.pods.values()):
            await self._start(admitted)

    async def _start(self, pod: Pod) -> None:
        for each in pod.containers:
            if each.init and each.running is not None:
                return
            if each.done or each.running is not None:
                continue
            await self.kubelet.start(each)
            if each.running is None:
                return
            granted = await self._granted(pod, each)
            each.running.grant = granted
            gpu = each.running.env["NVIDIA_VISIBLE_DEVICES"]
            each.running.daemon = self.mps.daemons.get(gpu)
            if each.init:
                return

    async def _granted(self, pod: Pod, container: Container) -> ContainerGrant | None:
        for grant in await self.grants():
            if grant.pod_uid == pod.uid:
                return next(each for each in grant.containers if each.name == container.name)
        return None

    async def grants(self) -> list[Grant]:
        return [msgspec.convert(each["spec"], Grant) for each in (await self.kube.list(GRANTS)).items]

    async def inits_end(self) -> None:
        for _, each in self.kubelet.containers:
            if each.init and each.running is not None:
                each.running, each.done = None, True

    async def finish(self, name: str, phase: str) -> None:
        """All containers of a pod have ended; it stays in the cluster."""
        pod = await self.kube.patch(PODS, name, {"status": {"phase": phase}}, namespace="default", subresource="status")
        self.kubelet.drop(pod["metadata"]["uid"])

    async def delete(self, name: str) -> None:
        """As with a grace period: the containers end first."""
        with contextlib.suppress(NotFound):
            pod = await self.kube.get(PODS, name, namespace="default")
            self.kubelet.drop(pod["metadata"]["uid"])
            await self.kube.delete(PODS, name, namespace="default")

    async def configure(self, policy: str) -> None:
        data = {"data": {"lamina.yaml": kinds.text_of(policy)}}
        await self.kube.patch(CONFIG_MAPS, "lamina", data, namespace="lamina-system")

    async def label(self, key: str, value: str) -> None:
        await self.kube.patch(NODES, NODE, {"metadata": {"labels": {key: value or None}}})

    async def cut_by_hand(self, gpu: str, profile: str) -> None:
        """Somebody makes an instance where the GPU's MIG mode is on and no grant has the place."""
        facts = next((each for each in self.nvml.present if each.uuid == gpu), None)
        if facts is None or not facts.mig_enabled or self.nvml.broken:
            return
        taken = {Placed(each.profile, each.start) for each in self.nvml.instances.get(gpu, ())}
        for grant in await self.grants():
            shares = [share for each in grant.containers for share in each.shares]
            taken |= {Placed(s.mig.profile, s.mig.start) for s in shares if s.mig and s.gpu == gpu}
        starts = CARD.places(CARD.profile(profile), taken)
        if starts:
            self.theirs.append((gpu, await self.nvml.create_mig(gpu, Placed(profile, starts[0]))))

    async def clean_by_hand(self) -> None:
        """Whoever made instances by hand destroys those that no container has, and their processes end."""
        self.nvml.running.clear()
        seen = {each.running.env["NVIDIA_VISIBLE_DEVICES"] for _, each in self.kubelet.containers if each.running}
        for gpu, made in list(self.theirs):
            if not any(made.uuid in devices for devices in seen):
                await self.nvml.destroy_mig(gpu, made.id)
                self.theirs.remove((gpu, made))

    def use(self, unit: str) -> None:
        """A process that nobody knows begins on a GPU or MIG device."""
        self.nvml.running[unit] = (GpuProcess(7, 1),)

    def lose_or_find(self, number: int) -> None:
        """A GPU falls off the bus, or comes back as it was."""
        lost = self.lost.pop(number, None)
        if lost is not None:
            self.nvml.present = sorted([*self.nvml.present, lost], key=lambda each: each.index)
        elif len(self.nvml.present) > 1:
            self.lost[number] = next(each for each in self.nvml.present if each.index == number)
            self.nvml.present = [each for each in self.nvml.present if each.index != number]

    async def reboot(self) -> None:
        """What is in memory goes: containers, daemons, instances, CDI specs. kubelet and the record remember."""
        await self.agent_dies()
        for _, each in self.kubelet.containers:
            each.running, each.done = None, False
        self.nvml.instances.clear()
        self.nvml.running.clear()
        self.nvml.exclusive.clear()
        self.nvml.present = list(FACTS)
        self.lost.clear()
        self.nvml.broken = ""
        self.theirs.clear()
        self.mps.daemons.clear()
        self.slices.lengths.clear()
        shutil.rmtree(self.root / "cdi", ignore_errors=True)
        shutil.rmtree(self.root / "mps", ignore_errors=True)
        self.kubelet.restart()
        await self.agent_starts()


def _over(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _asked(pod: Object) -> dict[str, int]:
    """Devices as Kubernetes counts them: the sum of the containers, or the largest init container."""
    found: dict[str, int] = {}
    for key in ("containers", "initContainers"):
        for each in pod["spec"].get(key, ()):
            for name, amount in each["resources"]["limits"].items():
                if is_device(name):
                    beside = found.get(name, 0)
                    found[name] = beside + int(amount) if key == "containers" else max(beside, int(amount))
    return found


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError | Died):
            _defect(result)


def _defect(failure: BaseException) -> None:
    """Raise what a part failed with, unless that is its death."""
    if not isinstance(failure.__cause__, Died):
        raise failure
