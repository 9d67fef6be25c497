"""Kubelet's device manager: the Registration service, admission of devices, and what a container gets for them.

One difference from a real kubelet is intended: after a restart, a real one starts a container whose plugin has not
registered again without PreStartContainer. This one lets the container wait for its plugin.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import grpc
from msgspec import Struct

from lamina.ports.kubelet import deviceplugin_pb2 as pb
from lamina.ports.kubelet import deviceplugin_pb2_grpc as rpc
from lamina_lab.kubelet.device_manager import checkpoint
from lamina_lab.kubelet.device_manager.allocation import Device, DeviceAllocation, DeviceError, device_limits, pick
from lamina_lab.kubelet.device_manager.cdi import CdiMount, names_of
from lamina_lab.kubelet.device_manager.plugins import ConnectedPlugin, PluginError, refusal
from lamina_lab.kubelet.model.records import Kind, containers_of


class ContainerDevices(Struct, frozen=True):
    """What a container gets for the devices that it holds."""

    envs: Mapping[str, str]
    mounts: tuple[CdiMount, ...]
    cdi: tuple[str, ...]


class _Registration(rpc.RegistrationServicer):
    def __init__(self, manager: "DeviceManager") -> None:
        self._manager = manager

    async def Register(self, request: pb.RegisterRequest, context: Any) -> pb.Empty:
        if reason := refusal(request.version, request.resource_name):
            await context.abort(grpc.StatusCode.UNKNOWN, reason)
        try:
            await self._manager.register(request.resource_name, request.endpoint)
        except PluginError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return pb.Empty()


class DeviceManager:
    """`folder` is kubelet's device-plugins directory. `changed` is called when device counts may have changed."""

    def __init__(self, folder: Path, now: Callable[[], float], changed: Callable[[], None]) -> None:
        self._folder = folder
        self._now = now
        self._changed = changed
        self._plugins: dict[str, ConnectedPlugin] = {}
        self._listeners: dict[str, asyncio.Task[None]] = {}
        self._server: Any = None
        self._admission = asyncio.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self.ledger = checkpoint.load(folder)

    async def start(self) -> None:
        """Empty the socket directory, which makes plugins register again, and listen."""
        for entry in self._folder.iterdir():
            if entry.name != checkpoint.FILE:
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        self._server = grpc.aio.server()
        rpc.add_RegistrationServicer_to_server(_Registration(self), self._server)
        self._server.add_insecure_port(f"unix:{self._folder / 'kubelet.sock'}")
        await self._server.start()

    async def stop(self) -> None:
        for task in self._listeners.values():
            task.cancel()
        await asyncio.gather(*self._listeners.values(), return_exceptions=True)
        for plugin in self._plugins.values():
            await plugin.close()
        if self._server is not None:
            await self._server.stop(None)

    async def register(self, resource: str, endpoint: str) -> None:
        """Connect to a plugin that registered, replacing an earlier one of the resource. Raises PluginError."""
        plugin = ConnectedPlugin(resource, self._folder / endpoint)
        try:
            await plugin.dial()
        except PluginError:
            await plugin.close()
            raise
        before, listener = self._plugins.get(resource), self._listeners.get(resource)
        self._plugins[resource] = plugin
        self._listeners[resource] = asyncio.create_task(self._listen(plugin), name=f"plugin {resource}")
        if before and listener:
            listener.cancel()
            await before.close()

    async def admit(self, pod: Mapping[str, Any]) -> None:
        """Allocate devices for all containers of `pod`, or for none. Raises DeviceError, and the pod has failed.

        Pods are admitted one at a time in the order of the calls, as in a real kubelet.
        """
        async with self._admission:
            reusable: dict[str, set[str]] = {}
            try:
                for container in containers_of(pod["spec"]):
                    for resource, count in device_limits(pod, container.spec, self.ledger.resources).items():
                        own = await self._allocate(pod, container.name, resource, count, reusable.get(resource, set()))
                        if container.kind is Kind.INIT:
                            reusable.setdefault(resource, set()).update(own)
                        else:
                            reusable.setdefault(resource, set()).difference_update(own)
            except (DeviceError, PluginError) as error:
                self.release(pod["metadata"]["uid"])
                raise DeviceError(f"Allocate failed due to {error}, which is unexpected") from error

    async def prepare(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> ContainerDevices:
        """Call PreStartContainer if required. Returns what the container gets. Raises PluginError."""
        held = self.ledger.held_by(pod["metadata"]["uid"], container["name"])
        for resource in device_limits(pod, container, self.ledger.resources):
            plugin = self._plugins.get(resource)
            if plugin is None:
                raise PluginError(f"endpoint not found in cache for a registered resource: {resource}")
            if plugin.options.pre_start:
                if resource not in held:
                    raise PluginError(
                        f"no devices found allocated in local cache for pod {pod['metadata']['uid']}, "
                        f"container {container['name']}, resource {resource}"
                    )
                try:
                    await plugin.pre_start(held[resource].ids)
                except PluginError as error:
                    raise PluginError(f"device plugin PreStartContainer rpc failed with err: {error}") from error
        return _given(held)

    def release(self, pod_uid: str) -> None:
        """The pod has ended: free its devices."""
        if self.ledger.release(pod_uid):
            checkpoint.save(self._folder, self.ledger)

    def retain(self, pod_uids: Collection[str]) -> None:
        """Free devices of pods that are no longer on the node."""
        self.ledger.retain(pod_uids)
        checkpoint.save(self._folder, self.ledger)

    def holds_all(self, pod: Mapping[str, Any]) -> bool:
        """Whether every container of `pod` holds the devices that it requests, as after a restart."""
        uid = pod["metadata"]["uid"]
        return all(
            resource in self.ledger.held_by(uid, container.name)
            for container in containers_of(pod["spec"])
            for resource in device_limits(pod, container.spec, self.ledger.resources)
        )

    async def _allocate(
        self, pod: Mapping[str, Any], container: str, resource: str, count: int, reusable: set[str]
    ) -> tuple[str, ...]:
        uid = pod["metadata"]["uid"]
        choice = self.ledger.choose(uid, container, resource, count, reusable)
        if held := self.ledger.held_by(uid, container).get(resource):
            return held.ids
        plugin = self._plugins.get(resource)
        if plugin is None:
            raise DeviceError(f"unknown Device Plugin {resource}")
        preferred: list[str] = []
        if choice.missing:
            preferred = await plugin.prefer([*choice.available, *choice.fixed], choice.fixed, count)
        ids = pick(choice, preferred)
        answer = await plugin.allocate(ids)
        self.ledger.hold(DeviceAllocation(uid, container, resource, ids, self.ledger.numa_of(resource, ids), answer))
        checkpoint.save(self._folder, self.ledger)
        return ids

    async def _listen(self, plugin: ConnectedPlugin) -> None:
        def report(devices: list[Device]) -> None:
            self.ledger.report(plugin.resource, devices)
            self._changed()

        await plugin.listen(report)
        self.ledger.plugin_gone(plugin.resource, self._now())
        self._changed()
        with contextlib.suppress(grpc.aio.AioRpcError):
            await plugin.close()


def _given(held: Mapping[str, DeviceAllocation]) -> ContainerDevices:
    """The answers of all resources together. If two set the same name, the first counts, as in kubelet."""
    envs: dict[str, str] = {}
    mounts: dict[str, str] = {}
    annotations: dict[str, str] = {}
    cdi: list[str] = []
    for allocation in held.values():
        envs = {**allocation.answer.envs, **envs}
        mounts = {**allocation.answer.mounts, **mounts}
        annotations = {**allocation.answer.annotations, **annotations}
        cdi += allocation.answer.cdi
    return ContainerDevices(
        envs,
        tuple(CdiMount(host, inside) for inside, host in mounts.items()),
        tuple(names_of(cdi, annotations)),
    )
