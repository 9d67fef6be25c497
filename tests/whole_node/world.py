"""One node whole: the real controller and the real agent over the fakes, with kubelet, people and accidents.

Nothing happens by itself: time is passed on, and between two moments everybody has done all that there is to do.
"""

import asyncio
import contextlib
import copy
import logging
import os
import shutil
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import jsonpatch
from msgspec import structs

from lamina.agent.parts import AgentPorts
from lamina.agent.run import read_configuration, run_agent
from lamina.agent.state.settings import COVER, LIBRARIES, AgentSettings
from lamina.config_source.live import follow_config_map
from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.resizer import Resizer
from lamina.core.grants import ContainerGrant, Grant
from lamina.core.mig import Placed
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.objects import read_grant
from lamina.core.sizes import RESIZE, RESIZE_STATUS, usable
from lamina.errors import LaminaError
from lamina.ports.files import Files
from lamina.ports.host import FakeHost
from lamina.ports.kube import CONFIG_MAPS, GRANTS, NODES, PODS, EventRecorder, NotFound, Object
from lamina.ports.kube.fake import FakeKube
from lamina.ports.mps import FakeMps
from lamina.ports.nvml import FakeNvml, GpuFacts, GpuProcess, MigInstanceFacts
from lamina.ports.nvml.fake import fake_gpus
from lamina.ports.set_aside import SetAside
from lamina.ports.time_slices import FakeTimeSlices
from tests.controller.binders import Bench
from tests.controller.reviews import review
from tests.whole_node import kinds
from tests.whole_node.claims import ClaimDoor
from tests.whole_node.kinds import NODE
from tests.whole_node.kubelet import Container, Kubelet, Pod, Registrations, is_device
from tests.worlds.clocks import TogetherClock, all_done
from tests.worlds.deaths import Died, Life, mortal

CARD = MIG_CARDS["A100-40GB"]
FACTS = [
    structs.replace(gpu, mig_capable=True, pci_device=0x20B010DE)
    for gpu in fake_gpus(2, name="NVIDIA A100-SXM4-40GB", memory_mib=40960)
]
GPUS = [facts.uuid for facts in FACTS]
POLL_S = 10.0


class QuickFiles(Files):
    """Does not wait for the disk, which is changed often here."""

    def write(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        self.make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.unlink(missing_ok=True)
        temporary.write_bytes(content)
        temporary.chmod(mode)
        os.replace(temporary, path)  # noqa: PTH105


class _Idle:
    """In the place of the loop that lends time, which has no part in this and looks every 10 ms."""

    def __init__(self, *arguments: Any, **more: Any) -> None: ...

    async def run(self) -> None:
        await asyncio.Event().wait()


class Defects(SetAside):
    """Keeps the errors that were not raised on purpose. Here nothing else than a defect leads to one."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger)
        self.found: list[Exception] = []

    def add(self, kind: str, name: str, error: Exception) -> bool:
        if not isinstance(error, LaminaError):
            self.found.append(error)
        return super().add(kind, name, error)


class World:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = TogetherClock()
        self.kube, self.mps, self.slices = FakeKube(), FakeMps(), FakeTimeSlices()
        self.nvml = FakeNvml(FACTS, self.clock)
        self.kubelet = Kubelet(root / "cdi", self.clock)
        self.door = ClaimDoor(self.kube, root / "cdi")
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
            dra=True,
            poll_s=POLL_S,
        ).checked()
        self.life = Life()
        self.aside = Defects(logging.getLogger("lamina.agent"))
        self.task: asyncio.Task[None] | None = None
        self.parts: list[asyncio.Task[None]] = []
        self.theirs: list[tuple[str, MigInstanceFacts]] = []
        self.policy, self.layout = "default", ""
        """The policy in force, and what the label for MIG names."""
        """Instances that another program made."""
        self.lost: dict[int, GpuFacts] = {}
        """GPUs that fell off the bus, by index."""
        self.count = 0
        self.resized: set[str] = set()
        """The UIDs of pods of which another size was asked."""

    @contextlib.contextmanager
    def fake_ports(self) -> Any:
        """The agent gets fakes for kubelet and nvidia-smi."""
        with contextlib.ExitStack() as stack:
            for name, fake in {
                "parts.KubeletPodResources": lambda socket: self.kubelet,
                "parts.NvidiaSmi": lambda: self.slices,
                "parts.ArbitrationLoop": _Idle,
                "kubelet.plugins.Registration": Registrations(self.kubelet),
                "parts.ClaimRegistration": self.door.register,
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
        """The controller begins with an empty memory, after the one before it has ended."""
        await _ended(self.parts)
        self.control = Bench(self.kube, clock=self.clock)
        events = EventRecorder(self.kube, "lamina", now=self.clock.wall)
        following = follow_config_map(
            self.kube, self.clock, self.control.configuration, events, self.control.context.set_aside
        )
        works: list[Coroutine[Any, Any, None]] = [self.control.watches.run(), following]
        self.parts = [asyncio.create_task(each) for each in works]
        await all_done()

    async def agent_starts(self) -> None:
        self.life = Life()
        self.task = asyncio.create_task(self._agent())
        await all_done()

    async def _agent(self) -> None:
        self.aside = Defects(logging.getLogger("lamina.agent"))
        kube, nvml, mps, files = (mortal(each, self.life) for each in (self.kube, self.nvml, self.mps, self.files))
        ports: Any = AgentPorts(
            kube=kube, nvml=nvml, mps=mps, clock=self.clock, files=files, host=FakeHost(), aside=self.aside
        )
        configuration = await read_configuration(self.settings, replace(ports, kube=self.kube, files=self.files))
        await run_agent(self.settings, configuration, ports, asyncio.Event())

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
        for error in self.aside.found:
            raise AssertionError("the agent has a defect, which it set aside") from error

    async def time_passes(self, seconds: float) -> None:
        await self._looked_after()
        await self.clock.advance(seconds)

    async def a_pod_comes(self, kind: str) -> str:
        """Admitted or refused; its name, or nothing."""
        self.count += 1
        pod = copy.deepcopy(kinds.PODS[kind])
        pod["metadata"] |= {"name": f"p{self.count}", "namespace": "default"}
        config, ledger = self.control.configuration.value, self.control.ledger
        verdict = review(pod, config, offered=ledger.offers_native_devices)
        if not verdict.allowed:
            return ""
        await self.kube.create(PODS, jsonpatch.apply_patch(pod, list(verdict.patch)))
        return f"p{self.count}"

    async def pods(self) -> list[Object]:
        return (await self.kube.list(PODS)).items

    async def resize(self, name: str, wish: str) -> None:
        """A user asks for another size of a pod."""
        with contextlib.suppress(NotFound):
            change = {"metadata": {"annotations": {RESIZE: wish, RESIZE_STATUS: None}}}
            pod = await self.kube.patch(PODS, name, change, namespace="default")
            self.resized.add(pod["metadata"]["uid"])
            await all_done()

    async def schedule(self) -> None:
        """What the controller does for pods that are to be resized, and kube-scheduler with those that wait."""
        await self._resizer().reconcile()
        await all_done()
        await self.door.allocate()
        for pod in await self.pods():
            meta = pod["metadata"]
            if pod["spec"].get("nodeName") or _over(pod) or not await self._counts(pod):
                continue
            parsed = self.control.parse(pod)
            if parsed.request is None and not parsed.problem:  # it names nothing for which the extender is called
                await self.kube.bind(meta["name"], namespace="default", uid=meta["uid"], node=NODE)
            elif NODE in self.control.scheduler.filter(parsed, [NODE]).fitting:
                args = BindArgs(podName=meta["name"], podNamespace="default", podUID=meta["uid"], node=NODE)
                await self.control.binder.bind(args)
                await self.control.background.drain()

    def _resizer(self) -> Resizer:
        control = self.control
        return Resizer(
            control.context,
            control.scheduler,
            EventRecorder(self.kube, "lamina", now=self.clock.wall),
            placement_lease=control.turns,
            locks=control.locks,
            pods=lambda: control.watches.resized_pods,
            leading=lambda: True,
        )

    async def _counts(self, pod: Object) -> bool:
        """Whether kubelet reports so many devices that this pod fits next to all that are bound."""
        bound = [each for each in await self.pods() if each["spec"].get("nodeName") and not _over(each)]
        for resource, wanted in _asked(pod).items():
            healthy = sum(self.kubelet.devices.get(resource, {}).values())
            if wanted + sum(_asked(each).get(resource, 0) for each in bound) > healthy:
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
        await self.door.works()

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
                return usable(next(each for each in grant.containers if each.name == container.name))
        return None

    async def grants(self) -> list[Grant]:
        return [read_grant(each) for each in (await self.kube.list(GRANTS)).items]

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
        self.policy = policy
        data = {"data": {"lamina.yaml": kinds.text_of(policy)}}
        await self.kube.patch(CONFIG_MAPS, "lamina", data, namespace="lamina-system")

    async def label(self, key: str, value: str) -> None:
        self.layout = value if key == kinds.MIG_LABEL else self.layout
        await self.kube.patch(NODES, NODE, {"metadata": {"labels": {key: value or None}}})

    async def partition_by_hand(self, gpu: str, profile: str) -> None:
        """An administrator makes an instance where the GPU's MIG mode is on and no grant has the place."""
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
        """Instances made by hand that no container has are destroyed, and their processes end."""
        self.nvml.running.clear()
        seen = {each.running.env["NVIDIA_VISIBLE_DEVICES"] for _, each in self.kubelet.containers if each.running}
        for gpu, made in list(self.theirs):
            if not any(made.uuid in devices for devices in seen):
                await self.nvml.destroy_mig(gpu, made.id)
                self.theirs.remove((gpu, made))

    def use(self, unit: str) -> None:
        """A process that no one knows begins on a GPU or MIG device."""
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
        for claim in self.door.claims.values():
            claim.running = None
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
                    before = found.get(name, 0)
                    found[name] = before + int(amount) if key == "containers" else max(before, int(amount))
    return found


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks. Raises what one of them failed with, unless that is its death."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, BaseException) and not _is_death(result):
            raise result


def _is_death(failure: BaseException) -> bool:
    """Whether a process ended as it was meant to. Parts that die at the same moment end as a group."""
    if isinstance(failure, BaseExceptionGroup):
        return all(_is_death(each) for each in failure.exceptions)
    return isinstance(failure, asyncio.CancelledError | Died) or isinstance(failure.__cause__, Died)
