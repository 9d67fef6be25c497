"""Device plugins as kubelet sees them: it dials a plugin, reads its options, and watches its devices."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import grpc
from msgspec import Struct

from lamina.ports.kubelet import deviceplugin_pb2 as pb
from lamina.ports.kubelet import deviceplugin_pb2_grpc as rpc
from lamina_lab.kubelet.device_manager.allocation import Answer, Device
from lamina_lab.kubelet.device_manager.checkpoint import read_answer

VERSION = "v1beta1"
HEALTHY = "Healthy"
DIAL_S = 10.0
PRE_START_S = 30.0
_EXTENDED = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class PluginError(Exception):
    """A plugin failed or refused; the message reads as in the real kubelet."""


class PluginOptions(Struct, frozen=True):
    """The optional calls that a plugin wants."""

    pre_start: bool = False
    preferred: bool = False


class ConnectedPlugin:
    """A connected plugin of one resource."""

    def __init__(self, resource: str, socket: Path) -> None:
        self.resource = resource
        self.options = PluginOptions()
        self.connected = True
        # Its own pool: after a restart of the plugin on the same path, a shared connection would still back off.
        settings = [("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost")]
        self._channel = grpc.aio.insecure_channel(f"unix:{socket}", options=settings)
        self._stub: Any = rpc.DevicePluginStub(self._channel)

    async def dial(self) -> None:
        """Connect and read the options. Raises PluginError."""
        try:
            async with asyncio.timeout(DIAL_S):
                await self._channel.channel_ready()
                answer = await self._stub.GetDevicePluginOptions(pb.Empty())
        except TimeoutError as error:
            raise PluginError(f"failed to dial device plugin: no answer within {DIAL_S:g} s") from error
        except grpc.aio.AioRpcError as error:
            raise PluginError(f"failed to get device plugin options: {as_go(error)}") from error
        self.options = PluginOptions(answer.pre_start_required, answer.get_preferred_allocation_available)

    async def listen(self, report: Callable[[list[Device]], None]) -> None:
        """Report every list of devices. Returns when the plugin disconnects."""
        with contextlib.suppress(grpc.aio.AioRpcError):
            async for answer in self._stub.ListAndWatch(pb.Empty()):
                report([_device(device) for device in answer.devices])
        self.connected = False

    async def prefer(self, available: Iterable[str], must_include: Iterable[str], size: int) -> list[str]:
        """GetPreferredAllocation, or nothing if the plugin does not offer it. Raises PluginError."""
        if not self.options.preferred:
            return []
        request = pb.PreferredAllocationRequest(
            container_requests=[
                pb.ContainerPreferredAllocationRequest(
                    available_deviceIDs=list(available),
                    must_include_deviceIDs=list(must_include),
                    allocation_size=size,
                )
            ]
        )
        answer = await self._ask(self._stub.GetPreferredAllocation, request)
        return list(answer.container_responses[0].deviceIDs) if answer.container_responses else []

    async def allocate(self, ids: Iterable[str]) -> Answer:
        """Allocate for one container. Raises PluginError."""
        request = pb.AllocateRequest(container_requests=[pb.ContainerAllocateRequest(devices_ids=list(ids))])
        answer = await self._ask(self._stub.Allocate, request)
        if not answer.container_responses:
            raise PluginError(f"no containers return in allocation response {answer}".strip())
        return read_answer(answer.container_responses[0])

    async def pre_start(self, ids: Iterable[str]) -> None:
        """PreStartContainer, 30 s at most. Raises PluginError."""
        request = pb.PreStartContainerRequest(devices_ids=list(ids))
        await self._ask(self._stub.PreStartContainer, request, timeout=PRE_START_S)

    async def close(self) -> None:
        self.connected = False
        await self._channel.close()

    async def _ask(self, method: Any, request: Any, **options: Any) -> Any:
        if not self.connected:  # on a closed channel, gRPC would raise another kind of error
            raise self._stopped()
        try:
            return await method(request, **options)
        except grpc.aio.AioRpcError as error:
            raise PluginError(as_go(error)) from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.connected or (task and task.cancelling()):
                raise
            # The channel was closed during the call. gRPC reports this as a cancellation of the caller.
            raise self._stopped() from None

    def _stopped(self) -> PluginError:
        return PluginError(f"endpoint {self.resource} has been stopped")


def refusal(version: str, resource: str) -> str:
    """Why a registration is refused, or ""."""
    if version != VERSION:
        return f'requested API version "{version}" is not supported by kubelet. Supported version is "{VERSION}"'
    if not _EXTENDED.fullmatch(resource) or resource.startswith(("kubernetes.io/", "requests.")):
        return f'the ResourceName "{resource}" is invalid'
    return ""


def as_go(error: grpc.aio.AioRpcError) -> str:
    """A gRPC error as Go prints it, which is what users of a real cluster see."""
    code = "".join(word.capitalize() for word in error.code().name.split("_"))
    return f"rpc error: code = {'Canceled' if code == 'Cancelled' else code} desc = {error.details()}"


def _device(device: pb.Device) -> Device:
    return Device(device.ID, device.health == HEALTHY, tuple(node.ID for node in device.topology.nodes))
