"""A device plugin over real gRPC whose answers a test sets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc

from lamina.ports.kubelet import deviceplugin_pb2 as pb
from lamina.ports.kubelet import deviceplugin_pb2_grpc as rpc

RESOURCE = "nvidia.com/gpu"


def device(id: str, *, healthy: bool = True, numa: tuple[int, ...] = ()) -> pb.Device:
    topology = pb.TopologyInfo(nodes=[pb.NUMANode(ID=node) for node in numa]) if numa else None
    return pb.Device(ID=id, health="Healthy" if healthy else "Unhealthy", topology=topology)


class FakePlugin(rpc.DevicePluginServicer):
    """`allocated`, `prepared` and `asked` record calls; `refuse_start` and `refuse_allocate` are errors to give."""

    def __init__(
        self, folder: Path, devices: list[pb.Device], *, pre_start: bool = False, preferred: bool = False
    ) -> None:
        self.folder = folder
        self.devices = devices
        self.options = pb.DevicePluginOptions(
            pre_start_required=pre_start, get_preferred_allocation_available=preferred
        )
        self.allocated: list[list[str]] = []
        self.prepared: list[list[str]] = []
        self.asked: list[pb.ContainerPreferredAllocationRequest] = []
        self.prefer: list[str] = []
        self.refuse_start = ""
        self.refuse_allocate = ""
        self.answer: Callable[[list[str]], pb.ContainerAllocateResponse] = lambda ids: pb.ContainerAllocateResponse()
        self.in_allocate: Callable[[], Any] | None = None
        self.in_start: Callable[[], Any] | None = None
        self._server: Any = None
        self._changed = asyncio.Condition()
        self._reports = 0

    async def start(self) -> None:
        self._server = grpc.aio.server()
        rpc.add_DevicePluginServicer_to_server(self, self._server)
        (self.folder / "fake.sock").unlink(missing_ok=True)
        self._server.add_insecure_port(f"unix:{self.folder / 'fake.sock'}")
        await self._server.start()

    async def register(self, version: str = "v1beta1", resource: str = RESOURCE) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"unix:{self.folder / 'kubelet.sock'}", options=options) as channel:
            request = pb.RegisterRequest(version=version, endpoint="fake.sock", resource_name=resource)
            await rpc.RegistrationStub(channel).Register(request, wait_for_ready=True, timeout=60)

    async def begin(self) -> None:
        await self.start()
        await self.register()

    async def stop(self) -> None:
        await self._server.stop(None)

    async def report(self, devices: list[pb.Device]) -> None:
        async with self._changed:
            self.devices = devices
            self._reports += 1
            self._changed.notify_all()

    async def GetDevicePluginOptions(self, request: pb.Empty, context: Any) -> pb.DevicePluginOptions:
        return self.options

    async def ListAndWatch(self, request: pb.Empty, context: Any) -> AsyncIterator[pb.ListAndWatchResponse]:
        shown = -1
        while True:
            async with self._changed:
                while self._reports == shown:
                    await self._changed.wait()
                shown = self._reports
            yield pb.ListAndWatchResponse(devices=self.devices)

    async def GetPreferredAllocation(
        self, request: pb.PreferredAllocationRequest, context: Any
    ) -> pb.PreferredAllocationResponse:
        self.asked.extend(request.container_requests)
        answer = pb.ContainerPreferredAllocationResponse(deviceIDs=self.prefer)
        return pb.PreferredAllocationResponse(container_responses=[answer])

    async def Allocate(self, request: pb.AllocateRequest, context: Any) -> pb.AllocateResponse:
        ids = list(request.container_requests[0].devices_ids)
        if self.in_allocate:
            await self.in_allocate()
        if self.refuse_allocate:
            await context.abort(grpc.StatusCode.INTERNAL, self.refuse_allocate)
        self.allocated.append(ids)
        return pb.AllocateResponse(container_responses=[self.answer(ids)])

    async def PreStartContainer(
        self, request: pb.PreStartContainerRequest, context: Any
    ) -> pb.PreStartContainerResponse:
        if self.in_start:
            await self.in_start()
        if self.refuse_start:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, self.refuse_start)
        self.prepared.append(sorted(request.devices_ids))
        return pb.PreStartContainerResponse()
