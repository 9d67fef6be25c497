"""Ports that fail as no one expects, and an agent that runs on them."""

import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import grpc
import pytest

from lamina.agent import parts
from lamina.agent.kubelet import registration
from lamina.agent.parts import AgentPorts
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.host import FakeHost
from lamina.ports.kube import NODES
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.allocations import Holder, KubeletPodResources
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginStub
from lamina.ports.kubelet.servers import POD_RESOURCES_SOCKET
from lamina.ports.listener import Address
from lamina.ports.mps import FakeMps
from lamina.ports.nvml import FakeNvml, GpuProcess
from lamina.ports.time_slices import FakeTimeSlices
from tests.agent.mig_nodes import FACTS, GPU
from tests.agent.node import RESOURCE
from tests.agent.running_agent import RunningAgent
from tests.waiting import Otherwise, until
from tests.worlds.planted import Mines

T = TypeVar("T")
SHARED = {"resources": [{"name": RESOURCE, "replicas": 4}]}
PLUGIN = {"version": "v1", "flags": {"plugin": {"passDeviceSpecs": True}}}
FILES = {"mps": {**PLUGIN, "sharing": {"mps": SHARED}}, "sliced": {**PLUGIN, "sharing": {"timeSlicing": SHARED}}}
CONFIG = json.dumps(
    {
        "sharing": {"modes": ["quota", "mig"]},
        "nativeDevices": {"configs": FILES, "timeSlice": "short"},
        "health": {"recoverySeconds": 0.2},
    }
)
LABEL = "nvidia.com/device-plugin.config"
"""NVIDIA's configurations are chosen by this label."""


class MinedAgent(RunningAgent):
    """An agent with mines behind its ports. The test itself uses the ports without them."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.mines = Mines()
        self.mps, self.files, self.host, self.slices = FakeMps(), Files(), FakeHost(), FakeTimeSlices()

    def ports(self) -> AgentPorts:
        around = self.mines.around
        return AgentPorts(
            kube=around("kube", self.kube),
            nvml=around("nvml", self.nvml),
            mps=around("mps", self.mps),
            clock=self.clock,
            files=around("files", self.files),
            host=around("host", self.host),
            aside=self.aside,
        )

    async def until(self, ask: Callable[[], T | Awaitable[T]], otherwise: Otherwise = "") -> T:
        """In longer steps: what failed often is tried again seldom."""
        return await until(ask, otherwise, task=self._task, clock=self.clock, step_s=0.5)

    async def begin(self, kind: str = "") -> None:
        """Start the agent of a node of this kind: a name in FILES, or empty for one that grants shares."""
        await self.kube.patch(NODES, self.node.name, {"metadata": {"labels": {LABEL: kind or None}}})
        if kind == "sliced":
            self.nvml.running[GPU] = (GpuProcess(7, 100),)
        await self.start(CONFIG)


@contextlib.asynccontextmanager
async def mined_agent(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MinedAgent]:
    """A node of two A100 with 40 GB, whose agent has not started."""
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        made = MinedAgent(Path(folder))
        mines = made.mines
        made.nvml = FakeNvml(FACTS, made.clock)
        mps_root = made.root / "mps"
        made.settings = replace(made.settings, metrics=Address("127.0.0.1", 0), poll_s=0.5, mps_root=mps_root)
        pod_resources = parts.KubeletPodResources
        monkeypatch.setattr(parts, "KubeletPodResources", lambda socket: mines.around("kubelet", pod_resources(socket)))
        monkeypatch.setattr(parts, "NvidiaSmi", lambda: mines.around("slices", made.slices))
        for call in (registration.register, registration.serving):
            monkeypatch.setattr(registration, call.__name__, mines.before(f"kubelet.{call.__name__}", call))
        await made.kube.create(NODES, {"metadata": {"name": made.node.name, "labels": {}}})
        await made.kubelet.start()
        yield made
        mines.armed = ""
        await made.stop()
        await made.kubelet.stop()


async def attempt(mined: MinedAgent, pod: str, *devices: str) -> bool:
    """Whether the container of a pod starts that kubelet lists with these devices."""
    mined.kubelet.held = [(RESOURCE, Holder("default", pod, "main", frozenset(devices)))]
    if not any(each.resource_name == RESOURCE for each in mined.kubelet.registrations):
        return False
    try:
        async with mined.kubelet.channel(RESOURCE) as channel:
            plugin = DevicePluginStub(channel)
            wish = messages.ContainerAllocateRequest(devices_ids=devices)
            await plugin.Allocate(messages.AllocateRequest(container_requests=[wish]))
            await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=devices))
    except grpc.RpcError:
        return False
    return True


async def seconds(mined: MinedAgent, count: int) -> None:
    """Let so much time pass. What is under way on sockets goes on meanwhile."""
    pods = KubeletPodResources(mined.kubelet.folder / POD_RESOURCES_SOCKET)
    for _ in range(2 * count):
        await mined.clock.advance(0.5)
        with contextlib.suppress(Outside):
            await pods.holders({RESOURCE})
