"""A kubelet without sockets: its device manager, and containers that start from CDI specs."""

import asyncio
import contextlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from lamina.agent.kubelet.plugin import ResourcePlugin
from lamina.core.grants import ContainerGrant
from lamina.enforcement import Limits, read_limits
from lamina.errors import Outside
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.allocations import Holder
from tests.worlds.clocks import TogetherClock
from tests.worlds.deaths import Died

AGAIN_S = 0.5
UNTRIED = "not tried yet"
_AMOUNTS = ("memory", "cores", "mem-percentage", "gpumem", "gpucores", "core.percentage")


def is_device(resource: str) -> bool:
    """Whether kubelet hands out devices for it, and does not leave it to others."""
    return not resource.endswith(_AMOUNTS)


class Refused(Exception):
    """What a call of a plugin was answered with."""


class _Context:
    async def abort(self, code: Any, details: str) -> NoReturn:
        raise Refused(details)


@dataclass
class Started:
    """What a container started with: its environment, host paths by its own, limits, and its grant if it has one."""

    env: dict[str, str]
    mounts: dict[str, str]
    specs: dict[Path, str]
    limits: Limits | None
    grant: ContainerGrant | None = None
    daemon: object = None


@dataclass
class Container:
    name: str
    asks: dict[str, int]
    init: bool = False
    devices: dict[str, list[str]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    running: Started | None = None
    done: bool = False
    reason: str = UNTRIED


@dataclass
class Pod:
    uid: str
    name: str
    containers: list[Container]

    @property
    def runs(self) -> bool:
        return all(each.done if each.init else each.running is not None for each in self.containers)


class Kubelet:
    """`devices` are those of each resource, and whether they are healthy; `pods` those that it has admitted."""

    def __init__(self, cdi: Path, clock: TogetherClock) -> None:
        self._cdi = cdi
        self._clock = clock
        self.devices: dict[str, dict[str, bool]] = {}
        self.plugins: dict[str, ResourcePlugin] = {}
        self.pods: dict[str, Pod] = {}
        self.silent = False
        self._restarted = asyncio.Event()

    @property
    def containers(self) -> Iterator[tuple[Pod, Container]]:
        return ((pod, each) for pod in self.pods.values() for each in pod.containers)

    async def registered(self, resource: str, plugin: ResourcePlugin) -> None:
        """Follow a plugin until the kubelet restarts or the plugin's process ends."""
        self.plugins[resource] = plugin
        follower = asyncio.create_task(self._follow(resource, plugin))
        try:
            await self._restarted.wait()
        finally:
            plugin.end_streams()
            follower.cancel()
            if self.plugins.get(resource) is plugin:
                del self.plugins[resource]
                self.devices[resource] = dict.fromkeys(self.devices.get(resource, ()), False)

    async def _follow(self, resource: str, plugin: ResourcePlugin) -> None:
        async for reported in plugin.ListAndWatch(messages.Empty(), _Context()):
            self.devices[resource] = {each.ID: each.health == "Healthy" for each in reported.devices}

    def restart(self) -> None:
        """Plugins are forgotten, and who holds what is not reported for a while."""
        self.plugins.clear()
        self.devices.clear()
        self.silent = True
        self._restarted.set()
        self._restarted = asyncio.Event()

    async def holders(self, resources: Collection[str]) -> tuple[Holder, ...]:
        if self.silent:
            raise Outside("kubelet does not list its containers")
        found = []
        for pod, each in self.containers:
            held = frozenset(id for resource in resources for id in each.devices.get(resource, ()))
            if held and not each.init:
                found.append(Holder("default", pod.name, each.name, held))
        return tuple(found)

    def free(self, resource: str) -> list[str]:
        """Healthy devices that no one holds."""
        held = {id for _, each in self.containers for id in each.devices.get(resource, ())}
        return [id for id, healthy in self.devices.get(resource, {}).items() if healthy and id not in held]

    async def admit(self, uid: str, name: str, spec: dict[str, Any]) -> str:
        """Allocate the devices of all containers; why that cannot be, or nothing."""
        pod = Pod(uid, name, _containers(spec))
        self.pods[uid] = pod
        for each in pod.containers:
            for resource, count in each.asks.items():
                reusable = [id for one in pod.containers if one.init for id in one.devices.get(resource, ())]
                try:
                    await self._allocate(each, resource, count, [] if each.init else reusable)
                except (Refused, Died) as refused:
                    del self.pods[uid]
                    return str(refused) or "the plugin died"
        return ""

    async def _allocate(self, container: Container, resource: str, count: int, reusable: list[str]) -> None:
        plugin, free = self.plugins.get(resource), self.free(resource)
        if plugin is None or len(free) + len(reusable) < count:
            raise Refused(f"requested number of {resource} is unavailable")
        chosen = reusable[:count]
        if len(chosen) < count:
            first = []
            if plugin.options.get_preferred_allocation_available:
                wish = messages.ContainerPreferredAllocationRequest(
                    available_deviceIDs=[*chosen, *free], must_include_deviceIDs=chosen, allocation_size=count
                )
                asked = messages.PreferredAllocationRequest(container_requests=[wish])
                answer = await plugin.GetPreferredAllocation(asked, _Context())
                first = [id for id in answer.container_responses[0].deviceIDs if id in free]
            chosen = [*dict.fromkeys([*chosen, *first, *free])][:count]
        request = messages.ContainerAllocateRequest(devices_ids=chosen)
        answered = await plugin.Allocate(messages.AllocateRequest(container_requests=[request]), _Context())
        container.devices[resource] = chosen
        container.names.append(answered.container_responses[0].cdi_devices[0].name.partition("=")[2])

    async def start(self, container: Container) -> None:
        """Start a container, or say in its `reason` why it does not."""
        for resource, ids in container.devices.items():
            plugin = self.plugins.get(resource)
            if plugin is None:
                container.reason = f"no plugin serves {resource}"
                return
            try:
                await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=ids), _Context())
            except (Refused, Died) as refused:
                container.reason = str(refused) or "the plugin died"
                return
        specs = {self._cdi / f"lamina.dev-ticket_{name}.json": "" for name in container.names}
        try:
            specs = {path: path.read_text() for path in specs}
        except FileNotFoundError as missing:
            container.reason = f"unresolvable CDI device: {missing}"
            return
        container.running, container.reason = started(specs), ""

    def drop(self, uid: str) -> None:
        """The pod's containers end, and what it held is free."""
        self.pods.pop(uid, None)


def _containers(spec: dict[str, Any]) -> list[Container]:
    found = []
    for key in ("initContainers", "containers"):
        for each in spec.get(key, ()):
            limits = each.get("resources", {}).get("limits", {})
            asks = {name: int(amount) for name, amount in limits.items() if is_device(name)}
            found.append(Container(each["name"], asks, init=key == "initContainers"))
    return found


def started(specs: dict[Path, str]) -> Started:
    """What a container starts with."""
    running = Started({}, {}, specs, None)
    for text in specs.values():
        edits = json.loads(text)["devices"][0]["containerEdits"]
        running.env |= dict(each.split("=", 1) for each in edits["env"])
        running.mounts |= {each["containerPath"]: each["hostPath"] for each in edits.get("mounts", ())}
    if "/run/lamina/limits" in running.mounts:
        running.limits = read_limits(Path(running.mounts["/run/lamina/limits"]))
    return running


class Registrations:
    """Takes the place of `Registration`, which speaks with kubelet over sockets."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet

    def __call__(self, plugin: ResourcePlugin, folder: Path, kind: Any, **ports: Any) -> "_Registration":
        return _Registration(self._kubelet, plugin, kind.resource, ports["clock"])


@dataclass
class _Registration:
    kubelet: Kubelet
    plugin: ResourcePlugin
    resource: str
    clock: TogetherClock

    async def run(self) -> None:
        while True:
            with contextlib.suppress(Refused):
                await self.kubelet.registered(self.resource, self.plugin)
            await self.clock.sleep(AGAIN_S)
