"""An agent that runs in a test, with fake ports."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from lamina import configuration
from lamina.agent.parts import AgentPorts
from lamina.agent.run import run_agent
from lamina.agent.state.settings import COVER, LIBRARIES, AgentSettings
from lamina.config_source.live import LiveConfiguration
from lamina.core.gpus import Inventory
from lamina.core.objects import read_inventory
from lamina.ports.clock import FakeClock
from lamina.ports.files import Files
from lamina.ports.host import LinuxHost
from lamina.ports.kube import INVENTORIES, NotFound
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.allocations import Holder, KubeletPodResources
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginStub
from lamina.ports.kubelet.fake import FakeKubelet
from lamina.ports.kubelet.servers import POD_RESOURCES_SOCKET
from lamina.ports.mps import FakeMps
from lamina.ports.nvml.fake import FakeNvml, fake_gpus
from lamina.ports.set_aside import SetAside
from tests.agent.node import RESOURCE, Node
from tests.waiting import Otherwise, until

T = TypeVar("T")
NAMESPACE = "lamina-system"
STEP_S = 0.05
"""How far the agent's clock goes on between two looks of a test."""


class RunningAgent:
    """An agent with its ports: two GPUs of ten slots each, a node without labels."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.node = Node(root / "unused")
        self.kube = self.node.kube
        self.clock = FakeClock()
        self.nvml = FakeNvml(fake_gpus(2), self.clock)
        self.kubelet = FakeKubelet(root / "k")
        for folder in ("driver", "facade"):
            (root / folder).mkdir()
            for library in (*LIBRARIES, COVER):
                (root / folder / library).write_text(f"{folder} {library}")
        self.settings = AgentSettings(
            node=self.node.name,
            kubelet_dir=root / "k",
            cdi_dir=root / "cdi",
            state_dir=root / "state",
            driver_dir=root / "driver",
            facade_dir=root / "facade",
            poll_s=STEP_S,
        ).checked()
        self.aside = SetAside(logging.getLogger("lamina.agent"))
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, text: str = "") -> None:
        self._stop = asyncio.Event()
        config = configuration.load(text, "test")
        self._task = asyncio.create_task(
            run_agent(self.settings, LiveConfiguration(config, text), self.ports(), self._stop)
        )

    def ports(self) -> AgentPorts:
        """What the agent gets."""
        return AgentPorts(
            kube=self.kube,
            nvml=self.nvml,
            mps=FakeMps(),
            clock=self.clock,
            files=Files(),
            host=LinuxHost(),
            aside=self.aside,
        )

    @property
    def alive(self) -> bool:
        return self._task is not None and not self._task.done()

    async def stop(self) -> None:
        self._stop.set()
        if self._task is not None:
            await self._task
            self._task = None

    async def inventory(self, wanted: Callable[[Inventory], bool]) -> Inventory:
        """The published inventory once it is as wanted."""

        async def published() -> Inventory | None:
            with contextlib.suppress(NotFound):
                found = read_inventory(await self.kube.get(INVENTORIES, self.node.name))
                return found if wanted(found) else None
            return None

        return await self.until(published)

    async def devices(self, resource: str, healthy: int) -> dict[str, bool]:
        """What kubelet knows of `resource`, once just so many of its devices are healthy."""

        def reported() -> bool:
            found = self.kubelet.devices.get(resource)
            return found is not None and sum(found.values()) == healthy

        await self.until(reported, lambda: f"{healthy} healthy devices of {resource}: {self.kubelet.devices}")
        return self.kubelet.devices[resource]

    async def until(self, ask: Callable[[], T | Awaitable[T]], otherwise: Otherwise = "") -> T:
        """The first true answer, while time passes for the agent."""
        return await until(ask, otherwise, task=self._task, clock=self.clock, step_s=STEP_S)

    async def rounds(self, count: int) -> None:
        """Let the agent go round so often. What it has asked kubelet by then is answered before this question is."""
        pods = KubeletPodResources(self.kubelet.folder / POD_RESOURCES_SOCKET)
        for _ in range(count):
            await self.clock.advance(self.settings.poll_s)
            await pods.holders({RESOURCE})

    async def started(self, pod: str, *tickets: str) -> str:
        """Allocate and start the container `main` of a pod that kubelet lists; the name it got."""
        self.kubelet.held.append((RESOURCE, Holder("default", pod, "main", frozenset(tickets))))
        await self.until(lambda: any(each.resource_name == RESOURCE for each in self.kubelet.registrations))
        async with self.kubelet.channel(RESOURCE) as channel:
            plugin = DevicePluginStub(channel)
            wish = messages.ContainerAllocateRequest(devices_ids=tickets)
            answer = await plugin.Allocate(messages.AllocateRequest(container_requests=[wish]))
            await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=tickets))
        name: str = answer.container_responses[0].cdi_devices[0].name.partition("=")[2]
        return name
