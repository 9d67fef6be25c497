"""A kubelet for tests: the device manager's part of one, over real sockets, without containers.

`FakePodResources` answers without any socket. `FakeKubelet` serves Registration and PodResources in a folder, dials
back to each plugin that registers and follows its devices, as kubelet does.
"""

import asyncio
from collections.abc import Collection
from pathlib import Path

import grpc

from lamina.errors import Outside
from lamina.ports.kubelet import deviceplugin_pb2 as plugin_messages
from lamina.ports.kubelet import podresources_pb2 as messages
from lamina.ports.kubelet.allocations import Holder
from lamina.ports.kubelet.deviceplugin_pb2_grpc import (
    DevicePluginStub,
    RegistrationServicer,
    add_RegistrationServicer_to_server,
)
from lamina.ports.kubelet.podresources_pb2_grpc import (
    PodResourcesListerServicer,
    add_PodResourcesListerServicer_to_server,
)
from lamina.ports.kubelet.servers import KUBELET_SOCKET, PLUGIN_FOLDER, POD_RESOURCES_SOCKET, VERSION


class FakePodResources:
    """`listed` is what the node holds, whatever resources are asked for; while `broken` is a sentence, asking fails."""

    def __init__(self, *listed: Holder) -> None:
        self.listed = list(listed)
        self.broken = ""

    def hold(self, pod: str, container: str, *devices: str, namespace: str = "default") -> None:
        self.listed.append(Holder(namespace, pod, container, frozenset(devices)))

    async def holders(self, resources: Collection[str]) -> tuple[Holder, ...]:
        if self.broken:
            raise Outside(self.broken)
        return tuple(self.listed)


class FakeKubelet(RegistrationServicer, PodResourcesListerServicer):
    """A kubelet whose folders are below `folder`. `devices` holds, by resource, each device and whether it is healthy.

    `held` is what PodResources tells; `refuse` is a sentence to refuse registrations with.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.devices: dict[str, dict[str, bool]] = {}
        self.registrations: list[plugin_messages.RegisterRequest] = []
        self.held: list[tuple[str, Holder]] = []
        self.refuse = ""
        self._servers: list[grpc.aio.Server] = []
        self._streams: list[asyncio.Task[None]] = []
        self._changed = asyncio.Condition()

    @property
    def plugins(self) -> Path:
        return self.folder / PLUGIN_FOLDER

    async def start(self) -> None:
        """Begin to serve, in an emptied folder of sockets, as a kubelet does."""
        self.plugins.mkdir(parents=True, exist_ok=True)
        for leftover in self.plugins.iterdir():
            leftover.unlink()
        resources = self.folder / POD_RESOURCES_SOCKET
        resources.parent.mkdir(parents=True, exist_ok=True)
        resources.unlink(missing_ok=True)
        for path in (self.plugins / KUBELET_SOCKET, resources):
            server = grpc.aio.server()
            add_RegistrationServicer_to_server(self, server)
            add_PodResourcesListerServicer_to_server(self, server)
            server.add_insecure_port(f"unix:{path}")
            await server.start()
            self._servers.append(server)

    async def stop(self) -> None:
        """Go away as a kubelet that is restarted does: streams end, devices are forgotten, containers stay."""
        for stream in self._streams:
            stream.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)
        for server in self._servers:
            await server.stop(grace=None)
        self._servers, self._streams, self.devices = [], [], {}

    async def until(self, resource: str, healthy: int, *, timeout_s: float = 10.0) -> dict[str, bool]:
        """The devices of `resource`, once just `healthy` of them are."""

        def reached() -> bool:
            return resource in self.devices and sum(self.devices[resource].values()) == healthy

        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(reached)
        return self.devices[resource]

    def channel(self, resource: str) -> grpc.aio.Channel:
        """A connection to the plugin that registered `resource` last."""
        endpoint = next(r.endpoint for r in reversed(self.registrations) if r.resource_name == resource)
        return grpc.aio.insecure_channel(f"unix:{self.plugins / endpoint}")

    async def Register(
        self, request: plugin_messages.RegisterRequest, context: grpc.aio.ServicerContext
    ) -> plugin_messages.Empty:
        if self.refuse:
            await context.abort(grpc.StatusCode.UNAVAILABLE, self.refuse)
        if request.version != VERSION:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"requested version {request.version} is not served")
        self.registrations.append(request)
        self._streams.append(asyncio.create_task(self._follow(request.resource_name)))
        return plugin_messages.Empty()

    async def List(
        self, request: messages.ListPodResourcesRequest, context: grpc.aio.ServicerContext
    ) -> messages.ListPodResourcesResponse:
        answer = messages.ListPodResourcesResponse()
        for resource, holder in self.held:
            pod = answer.pod_resources.add(name=holder.pod, namespace=holder.namespace)
            container = pod.containers.add(name=holder.container)
            for device in sorted(holder.devices):
                container.devices.add(resource_name=resource, device_ids=[device])
        return answer

    async def _follow(self, resource: str) -> None:
        try:
            async with self.channel(resource) as channel:
                async for response in DevicePluginStub(channel).ListAndWatch(plugin_messages.Empty()):
                    await self._update(resource, {d.ID: d.health == "Healthy" for d in response.devices})
        except grpc.RpcError:
            await self._update(resource, {})

    async def _update(self, resource: str, devices: dict[str, bool]) -> None:
        async with self._changed:
            self.devices[resource] = devices
            self._changed.notify_all()
